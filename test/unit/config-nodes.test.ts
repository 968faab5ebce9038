import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { nodeFacts } from "../../src/app/own-node.ts";
import { checkNodeSettings, findSharedFolders } from "../../src/cli/preflight.ts";
import { loadConfig } from "../../src/config/load.ts";
import { labelsOf, nodeName } from "../../src/config/nodes.ts";
import { principalsDigest } from "../../src/config/principals.ts";
import { leaseTerms } from "../../src/store/node-row.ts";
import { makeMarker, MARKER_FILE } from "../../src/security/files/volume-marker.ts";

const load = (...argv: string[]) => loadConfig({ argv, env: {} });

describe("the name and the labels of a node", () => {
  it.each<[string | undefined, string, string]>([
    ["gpu-1", "laptop", "gpu-1"],
    [undefined, "laptop.lan", "laptop.lan"],
    [undefined, "Ann’s MacBook", "Ann-s-MacBook"],
    [undefined, "-.box", "box"],
    [undefined, "x".repeat(80), "x".repeat(63)],
    [undefined, "", "localhost"],
  ])("the node with --node %s on the host %j is named %s", (node, host, expected) => {
    expect(nodeName({ node }, host)).toBe(expected);
    expect(nodeName(load("--node", expected))).toBe(expected);
  });

  it.each(["", "a b", "-a", "a/b", "x".repeat(64), "näme"])("the name %j of a node is refused", (name) => {
    expect(() => load(`--node=${name}`)).toThrow(/^--node is ".*": must be a name of at most 63 letters/);
  });

  it("labels are pairs of name and value, from a flag or a file", () => {
    expect(labelsOf(load("--labels", "gpu=a100, zone=eu-1/a,empty="))).toEqual({
      gpu: "a100",
      zone: "eu-1/a",
      empty: "",
    });
    const readFile = () => '{"labels": ["gpu=a100"]}';
    expect(labelsOf(loadConfig({ argv: ["--config", "/x.json"], env: {}, readFile }))).toEqual({ gpu: "a100" });
    expect(() => load("--labels", "gpu")).toThrow("must be labels, each name=value of letters, digits");
    expect(() => labelsOf(load("--labels", "gpu=a,gpu=b"))).toThrow("--labels names gpu twice.");
  });

  it("a lease has a length within bounds, and its other times follow from the length", () => {
    expect(load().leaseMs).toBe(45_000);
    expect(leaseTerms(load("--lease-ms", "15000").leaseMs)).toEqual({ ttlMs: 15_000, renewMs: 1_500, endMs: 9_000 });
    expect(leaseTerms()).toEqual({ ttlMs: 45_000, renewMs: 4_500, endMs: 27_000 });
    for (const ms of ["14999", "600001"])
      expect(() => load("--lease-ms", ms)).toThrow(`--lease-ms is ${ms}: must be a whole`);
  });

  it("the length of a lease is refused on a store of one machine", async () => {
    const given = { argv: ["--lease-ms", "60000"], env: {} };
    const problem = "--lease-ms: this store belongs to one machine.";
    await expect(checkNodeSettings(load("--store", "/a.db"), given)).rejects.toThrow(problem);
    expect(await checkNodeSettings(load("--store", "postgres://db/agents"), given)).toEqual([]);
  });

  it("settings of nodes are refused on a store of one machine, except those of the user's file", async () => {
    const config = { ...load("--store", "/a.db"), labels: ["a=b"] };
    const given = { argv: ["--node=a"], env: { CLAUDE_CODE_MCP_LABELS: "a=b" } };
    const problem = "--node, CLAUDE_CODE_MCP_LABELS: this store belongs to one machine.";
    await expect(checkNodeSettings(config, given)).rejects.toThrow(problem);
    expect(await checkNodeSettings(config, { argv: [], env: {} })).toEqual([]);
    const machines = load("--store", "postgres://db/agents", "--labels", "a=b,a=c");
    await expect(checkNodeSettings(machines, given)).rejects.toThrow("--labels names a twice.");
  });
});

describe("shared folders", () => {
  let root = "";
  const at = (path: string) => join(root, path);
  beforeAll(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-nodes-")));
    for (const folder of ["first/inner", "second", "none", "broken"]) mkdirSync(at(folder), { recursive: true });
    writeFileSync(at(`broken/${MARKER_FILE}`), "not an id");
  });
  afterAll(() => rmSync(root, { recursive: true }));

  it("the marker of a shared folder is made once, and read at the start of a server", async () => {
    const made = await makeMarker(at("first"));
    expect(await makeMarker(at("first"))).toEqual({ id: made.id, isNew: false });
    expect(made.isNew).toBe(true);
    const folders = await findSharedFolders([at("first")]);
    expect(folders).toEqual([{ folder: at("first"), volume: made.id }]);
    const facts = nodeFacts({
      config: load("--node=n1", "--max-live=7"),
      info: { version: "1" },
      sharedFolders: folders,
    });
    expect(facts).toMatchObject({ name: "n1", version: "1", sharedFolders: folders, maxLive: 7, principals: "" });
  });

  it("a shared folder without a readable marker is refused, with the command that makes one", async () => {
    await expect(findSharedFolders([at("none")])).rejects.toThrow(`claude-agents-mcp nodes share ${at("none")}`);
    await expect(findSharedFolders([at("absent")])).rejects.toThrow("its marker cannot be read (ENOENT");
    await expect(findSharedFolders([at("broken")])).rejects.toThrow("holds no id of a shared folder");
  });

  it("shared folders that contain one another or are copies are refused", async () => {
    await makeMarker(at("second"));
    await makeMarker(at("first/inner"));
    cpSync(at("second"), at("copy"), { recursive: true });
    await expect(findSharedFolders([at("first"), at("first/inner")])).rejects.toThrow("contain one another");
    await expect(findSharedFolders([at("second"), at("copy")])).rejects.toThrow("have the same marker");
  });
});

describe("the digest of users", () => {
  const ann = { scopes: ["run" as const], attended: false, operatorOptions: false };
  const oauth = { issuer: "https://issuer.example" };

  it("does not depend on the order of keys, or on the audience of a server", () => {
    const one = principalsDigest({ principals: { ann, bob: ann }, oauth: { ...oauth, audience: "a" } });
    const other = principalsDigest({ principals: { bob: ann, ann }, oauth: { audience: "b", ...oauth } });
    expect(one).toBe(other);
    expect(one).toMatch(/^[\da-f]{64}$/);
  });

  it("differs with rights, tokens and issuers, and is empty without users", () => {
    const digests = [
      principalsDigest({ principals: {} }),
      principalsDigest({ principals: { ann } }),
      principalsDigest({ principals: { ann: { ...ann, scopes: ["run", "admin"] } } }),
      principalsDigest({ principals: { ann: { ...ann, tokenSha256: "a".repeat(64) } } }),
      principalsDigest({ principals: { ann }, oauth }),
      principalsDigest({ principals: {}, oauth }),
    ];
    expect(digests[0]).toBe("");
    expect(new Set(digests).size).toBe(digests.length);
  });
});
