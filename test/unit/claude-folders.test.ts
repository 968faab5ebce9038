import type { Confinement } from "../../src/domain/principal.ts";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { placementOf, runtimeFor } from "../kit/sessions/confined-runtime.ts";
import { createEmptyProject, isTrusted, findExecutableSettings } from "../../src/claude/folder/trust.ts";
import { PRODUCT } from "../../src/domain/names.ts";
import type { SessionOptions } from "../../src/domain/options.ts";

let root = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "folders-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const at = (...path: string[]): string => join(root, ...path);

function folder(...path: string[]): string {
  mkdirSync(at(...path), { recursive: true });
  return at(...path);
}

function file(path: string, text = ""): string {
  folder(path, "..");
  writeFileSync(at(path), text);
  return at(path);
}

function link(path: string, target: string): string {
  symlinkSync(target, at(path), "junction");
  return at(path);
}

describe("folders that are checked before a start", () => {
  async function check(options: Partial<SessionOptions>, confinement: Partial<Confinement> = {}): Promise<void> {
    await runtimeFor(confinement).plan(placementOf({ cwd: root, ...options }));
  }
  const refusal = (field: string, problem: string) => ({
    code: "INVALID_ARGUMENT",
    message: expect.stringMatching(new RegExp(`^${field.replaceAll(/[[\]]/g, "\\$&")}: .*${problem}`)),
  });

  it("a start is refused if a folder does not exist, is a file, ends in white space or begins with ~", async () => {
    await expect(check({ cwd: at("gone") })).rejects.toMatchObject(refusal("cwd", "does not exist"));
    await expect(check({ cwd: file("a.txt") })).rejects.toMatchObject(refusal("cwd", "is a file"));
    // Claude Code would use the folder without the space, or the home folder.
    for (const name of ["blank ", "blank\u00A0"]) {
      mkdirSync(at(name));
      await expect(check({ cwd: at(name) })).rejects.toMatchObject(refusal("cwd", "white space"));
    }
    const further = check({ cwd: at("."), additionalDirectories: ["~/x"] });
    await expect(further).rejects.toMatchObject(refusal("additionalDirectories[0]", "~ is not expanded"));
    const additionalDirectories = [root, at("gone")];
    await expect(check({ additionalDirectories })).rejects.toMatchObject(
      refusal("additionalDirectories[1]", "not exist"),
    );
    await expect(check({ additionalDirectories: [root] })).resolves.toBeUndefined();
  });

  const allowDirs = () => [folder("unused"), folder("root")];

  it.each([
    ["beside it", () => folder("other")],
    ["beside it, with the same beginning", () => folder("root-b")],
    ["above it", () => root],
    ["above it, written with ..", () => `${at("root")}/..`],
    ["behind a link in it that leads outside", () => link("root/out", folder("other"))],
    [
      "below a link in it that leads outside",
      () => join(link("root/out", folder("other")), folder("other", "a").slice(-1)),
    ],
  ])("a start is refused outside the allowed folder: %s", async (_, place) => {
    const config = { allowDirs: allowDirs() };
    const cwd = place();
    await expect(check({ cwd }, config)).rejects.toMatchObject(refusal("cwd", "outside the folders"));
    const more = { cwd: at("root"), additionalDirectories: [at("root"), cwd] };
    await expect(check(more, config)).rejects.toMatchObject(refusal("additionalDirectories[1]", "outside the folders"));
  });

  it.each([
    ["the folder itself", () => at("root")],
    ["below it", () => folder("root", "a", "b")],
    ["below it, with a name that begins with dots", () => folder("root", "..a")],
    ["below it, written with ..", () => `${folder("root", "a")}/../a`],
    ["behind a link from outside into it", () => link("in", folder("root", "a"))],
  ])("a start is allowed in an allowed folder: %s", async (_, place) => {
    const config = { allowDirs: allowDirs() };
    const cwd = place();
    await expect(check({ cwd, additionalDirectories: [cwd] }, config)).resolves.toBeUndefined();
  });

  it("a start is allowed if the allowed folder is a link to the session's folder", async () => {
    const real = folder("real", "a");
    await expect(check({ cwd: real }, { allowDirs: [link("root", at("real"))] })).resolves.toBeUndefined();
    await expect(check({ cwd: real }, { allowDirs: [at("gone")] })).rejects.toMatchObject(refusal("cwd", "outside"));
  });

  it.skipIf(process.platform === "win32")("`pathToClaudeCodeExecutable` must be an executable file", async () => {
    const pathToClaudeCodeExecutable = file("claude");
    const refused = refusal("pathToClaudeCodeExecutable", "is not an executable file");
    await expect(check({ pathToClaudeCodeExecutable })).rejects.toMatchObject(refused);
    await expect(check({ pathToClaudeCodeExecutable: root })).rejects.toMatchObject(refused);
    await expect(check({ pathToClaudeCodeExecutable: at("gone") })).rejects.toMatchObject(refused);
    chmodSync(pathToClaudeCodeExecutable, 0o755);
    await expect(check({ pathToClaudeCodeExecutable })).resolves.toBeUndefined();
  });
});

describe("trust in a folder", () => {
  const environment = () => ({ CLAUDE_CONFIG_DIR: folder("config") });
  const record = (projects: unknown, text = JSON.stringify({ projects })) => file("config/.claude.json", text);
  const trusted = async (cwd: string, trustDirs: string[] = [], trustsRecord = true) =>
    isTrusted(cwd, { trustDirs, trustsRecord }, environment());

  it("a folder is trusted if Claude Code recorded trust in it or in a folder above it", async () => {
    record({ [at("repo")]: { hasTrustDialogAccepted: true, other: 1 } });
    expect(await trusted(folder("repo"))).toBe(true);
    expect(await trusted(folder("repo", "a", "b"))).toBe(true);
    expect(await trusted(folder("repo-b"))).toBe(false);
    expect(await trusted(root)).toBe(false);
  });

  it("a recorded folder is not trusted if `trustsRecord` is false", async () => {
    record({ [at("repo")]: { hasTrustDialogAccepted: true } });
    expect(await trusted(folder("repo"), [], false)).toBe(false);
    expect(await trusted(at("repo"), [at("repo")], false)).toBe(true);
  });

  it.each([
    ["nothing is recorded", "{}"],
    ["the record says no", '{"projects":{"HERE":{"hasTrustDialogAccepted":false}}}'],
    ["the record has no entry for trust", '{"projects":{"HERE":{}}}'],
    ["the record is garbled", '{"projects":{"HERE":{"hasTrustDialogAccepted":true}'],
    ["the record holds a string in place of true", '{"projects":{"HERE":{"hasTrustDialogAccepted":"true"}}}'],
  ])("a folder is not trusted if %s", async (_, text) => {
    const cwd = folder("repo");
    record({}, text.replace("HERE", cwd.replaceAll("\\", "\\\\")));
    expect(await trusted(cwd)).toBe(false);
    rmSync(at("config"), { recursive: true });
    expect(await isTrusted(cwd, { trustDirs: [], trustsRecord: true }, { CLAUDE_CONFIG_DIR: at("config") })).toBe(
      false,
    );
  });

  it("a folder below `trustDirs` is trusted, by whatever path it is reached", async () => {
    expect(await trusted(folder("repo", "a"), [at("repo")])).toBe(true);
    expect(await trusted(link("way", at("repo", "a")), [at("repo")])).toBe(true);
    expect(await trusted(at("repo", "a"), [link("here", at("repo"))])).toBe(true);
    expect(await trusted(folder("other"), [at("repo"), at("gone")])).toBe(false);
    expect(await trusted(link("repo/out", at("other")), [at("repo")])).toBe(false);
  });
});

describe("the executable content of an untrusted folder", () => {
  it("executable content is listed from the folder up to its repository's root, and no further", async () => {
    folder("repo", ".git");
    const outside = file(".mcp.json");
    const files = [".claude/settings.json", ".claude/settings.local.json", ".mcp.json"].map((name) =>
      file(`repo/${name}`),
    );
    const inner = file("repo/a/b/.mcp.json");
    file("repo/c/.mcp.json");
    file("repo/a/CLAUDE.md");
    expect(await findExecutableSettings(folder("repo", "a", "b"))).toEqual([inner, ...files]);
    expect(await findExecutableSettings(at("repo"))).toEqual(files);
    expect(files).not.toContain(outside);
  });

  it("outside a repository, only the folder's own content is listed", async () => {
    file(".mcp.json");
    expect(await findExecutableSettings(folder("a"))).toEqual([]);
    const own = file("a/.mcp.json");
    expect(await findExecutableSettings(at("a"))).toEqual([own]);
  });

  it("executable content is also listed if the folder is reached by a link", async () => {
    folder("repo", ".git");
    const shared = file("repo/.mcp.json");
    expect(await findExecutableSettings(link("way", folder("repo", "a")))).toEqual([shared]);
  });
});

describe("the placeholder project for an untrusted one", () => {
  it("the placeholder is empty, lies in the user's own configuration, and is writable only by the user", async () => {
    const environment = { CLAUDE_CONFIG_DIR: folder("config") };
    const stand = await createEmptyProject(environment);
    expect(stand).toBe(at("config", PRODUCT, "untrusted"));
    expect(await createEmptyProject(environment)).toBe(stand);
    expect(await findExecutableSettings(stand)).toEqual([]);
    const modes = [stand, join(stand, "..")].map((each) => statSync(each).mode & 0o077);
    expect(modes).toEqual(process.platform === "win32" ? [0o066, 0o066] : [0, 0]);
  });
});
