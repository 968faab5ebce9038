import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { childEnvironment, credentialOf } from "../../src/claude/child-environment.ts";
import { EnvironmentRecords } from "../../src/claude/environment-records.ts";
import { ProtectedPlaces } from "../../src/claude/protected-places.ts";
import { findProtection } from "../../src/security/protected-paths.ts";
import { placementOf, runtimeFor } from "../kit/sessions/confined-runtime.ts";
import { OPEN_POLICY } from "../kit/sessions/open-gate.ts";

const root = mkdtempSync(join(tmpdir(), "ccm-records-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const work = join(root, "work");
mkdirSync(work);

/** Environment of a client with a separate home folder, and `claude` in a separate `PATH`. */
function clientOf(name: string, more: Record<string, string> = {}) {
  const home = join(root, name);
  mkdirSync(join(home, "bin"), { recursive: true });
  writeFileSync(join(home, "bin/claude"), "", { mode: 0o755 });
  return { HOME: home, PATH: join(home, "bin"), ...more };
}

const environments = new EnvironmentRecords(Buffer.alloc(32), clientOf("server"));
const one = environments.open(clientOf("one"));
const other = environments.open(clientOf("other", { ANTHROPIC_API_KEY: "key-of-the-other" }));
const server = { owned: [], files: [], configFolders: [], trusted: [] };
const folderOf = (name: string) => join(root, name, ".claude");

describe("a session with an environment record", () => {
  const runtime = runtimeFor({}, { environments });
  const identity = { configFolder: folderOf("other"), paidBy: "ANTHROPIC_API_KEY" };

  it("a session has the configuration and the payer of its record", async () => {
    const session = placementOf({ cwd: work });
    expect((await runtime.plan({ ...session, environmentId: other.id })).identity).toMatchObject(identity);
    const mine = await runtime.plan({ ...session, environmentId: one.id });
    expect(mine.identity).toMatchObject({ configFolder: folderOf("one") });
    expect((await runtime.plan(session)).identity).toMatchObject({ configFolder: folderOf("server") });
    expect(runtime.environments.identityOf(other.id, "ann", {})).toEqual(identity);
    const added = { env: { CLAUDE_CONFIG_DIR: "/added" } };
    expect(runtime.environments.identityOf(one.id, "ann", added)).toMatchObject({ configFolder: "/added" });
    const plain = { principal: "ann", options: {} };
    expect(await runtime.environments.find(identity, plain, 0)).toBe(other.id);
    const named = {
      ...plain,
      options: { env: { CLAUDE_CONFIG_DIR: "/added" } },
    };
    const ofNamed = { ...identity, configFolder: "/added" };
    expect(await runtime.environments.find(ofNamed, plain, 0)).toBeUndefined();
    expect(await runtime.environments.find(ofNamed, named, 0)).toBe(other.id);
  });

  it("a node names itself in the identity of its sessions, and a plan adds the payer", async () => {
    const atNode = runtimeFor({}, { environments, node: "box-1" });
    expect(atNode.environments.identityOf(other.id, "ann", {})).toEqual({ ...identity, node: "box-1" });
    const payer = { kind: "ANTHROPIC_API_KEY", account: expect.stringMatching(/^account:[0-9a-f]{32}$/) };
    const { identity: planned } = await atNode.plan({
      ...placementOf({ cwd: work }),
      environmentId: other.id,
      isNew: true,
    });
    expect(planned).toEqual({ ...identity, node: "box-1", payer });
    const elsewhere = { ...planned, node: "box-2", configFolder: "/elsewhere" };
    expect(await atNode.environments.find(elsewhere, { principal: "ann", options: {} }, 0)).toBe(other.id);
  });

  it("a session is not started if its record is gone", async () => {
    expect(runtime.environments.identityOf("gone", "ann", {})).toBeUndefined();
    const gone = runtime.plan({ ...placementOf({ cwd: work }), environmentId: "gone" });
    await expect(gone).rejects.toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringContaining("is gone"),
    });
    const installing = runtime.installMissing({ environmentId: "gone", options: {} }, () => undefined);
    await expect(installing).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  });
});

describe("places that are protected from sessions", () => {
  // The `claude` in a client's `PATH` is never started, because the Agent SDK's own is found first. A named one is.
  const named = environments.open({
    ...clientOf("named"),
    CLAUDE_CODE_MCP_CLAUDE_PATH: join(root, "named/bin/claude"),
  });
  const places = new ProtectedPlaces(server, environments);

  it("the configuration of each record and its named Claude Code are protected", async () => {
    const closed = await places.closed();
    const files = ["server", "one", "other", "named"].map((name) => join(folderOf(name), "settings.json"));
    for (const file of [...files, join(root, "one/.claude.json"), join(root, "named/bin/claude")]) {
      expect(findProtection([file], closed, "write")).toBeDefined();
    }
    expect(findProtection([join(root, "one/bin/other")], closed, "write")).toBeUndefined();
    const session = { ...placementOf({ cwd: folderOf("other") }), environmentId: one.id };
    await expect(runtimeFor({}, { environments, protection: places }).plan(session)).rejects.toThrow("cwd: ");
  });

  it("the configuration of a later record is protected until the record is gone", async () => {
    const late = environments.open(clientOf("late"));
    const settings = join(folderOf("late"), "settings.json");
    expect(findProtection([settings], await places.closed(), "read")).toBeDefined();
    late.close();
    expect(findProtection([settings], await places.closed(), "read")).toBeUndefined();
  });

  it("protected places are closed to the sandbox too; the policy adds hosts and trusted folders", async () => {
    const trusting = { allowDirs: [], trustDirs: ["/trusted"], trustsRecord: true, spawnWrapper: [] };
    const sandbox = await places.sandbox({ ...OPEN_POLICY, sandboxDomains: ["example.com"], places: [trusting] });
    expect(sandbox).toMatchObject({ domains: ["example.com"], trusted: ["/trusted"] });
    expect(sandbox.configFolders).toEqual(["server", "one", "other", "named"].map(folderOf));
    expect(sandbox.closed).toContain(join(root, "other/.claude.json"));
    expect(sandbox.writeProtected).toContain(join(root, "named/bin/claude"));
    named.close();
  });
});

describe("the environment of a process", () => {
  const own = { PATH: "/bin", CLAUDE_CONFIG_DIR: "/client", A_KEY: "kept", CLAUDE_CODE_MCP_CLAUDE_PATH: "/c" };

  it("`childEnvironment` removes settings of the server and is idempotent", () => {
    const child = { depth: 1, configDir: "/ann", added: { A_KEY: "added" } };
    const made = childEnvironment(own, child);
    expect(made).toMatchObject({ PATH: "/bin", CLAUDE_CONFIG_DIR: "/ann", A_KEY: "added" });
    expect(made).not.toHaveProperty("CLAUDE_CODE_MCP_CLAUDE_PATH");
    expect(childEnvironment(made, child)).toEqual(made);
  });

  it.each([
    [{}, {}],
    [{ ANTHROPIC_API_KEY: "a", ANTHROPIC_AUTH_TOKEN: "b" }, { ANTHROPIC_AUTH_TOKEN: "b" }],
    [
      { CLAUDE_CODE_USE_BEDROCK: "1", AWS_PROFILE: "p", AWS_REGION: "r", ANTHROPIC_API_KEY: "a" },
      { AWS_PROFILE: "p", AWS_REGION: "r" },
    ],
  ])("`credentialOf` returns the credential of the payer: %j", (environment, credential) => {
    expect(credentialOf({ PATH: "/bin", ...environment })).toEqual(credential);
  });
});
