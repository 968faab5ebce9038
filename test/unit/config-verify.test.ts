import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { defaultVerification } from "../../src/app/engine-limits.ts";
import { loadConfig } from "../../src/config/load.ts";
import type { Config } from "../../src/config/schema.ts";

const FILE = "/settings.json";

function load(verify: unknown): Config["verify"] {
  const readFile = () => JSON.stringify({ verify });
  return loadConfig({ argv: [], env: { CLAUDE_CODE_MCP_CONFIG: FILE }, readFile }).verify;
}

describe("the setting `verify`", () => {
  const one = { folder: "/a", commands: ["npm test"], attempts: 0, timeoutMs: 5_000, ownTurns: true };

  it("the commands of folders are read from a file, a variable and a flag", () => {
    const text = JSON.stringify([one]);
    expect(load([one])).toEqual([one]);
    expect(loadConfig({ argv: ["--verify", text], env: {} }).verify).toEqual([one]);
    expect(loadConfig({ argv: [], env: { CLAUDE_CODE_MCP_VERIFY: text } }).verify).toEqual([one]);
    expect(loadConfig({ argv: [], env: {} }).verify).toEqual([]);
  });

  it.each([
    ["a relative folder", [{ ...one, folder: "a" }], "at 0.folder: must be an absolute path"],
    ["no commands", [{ ...one, commands: [] }], "at 0.commands"],
    ["nine commands", [{ ...one, commands: Array(9).fill("true") }], "at 0.commands"],
    ["a long command", [{ ...one, commands: ["x".repeat(4_097)] }], "at most 4096 bytes"],
    ["six attempts", [{ ...one, attempts: 6 }], "at 0.attempts"],
    ["an object", one, `"verify" in ${FILE} cannot be used`],
  ])("%s is refused, and the message names the place", (_, verify, message) => {
    expect(() => load(verify)).toThrow(message);
  });
});

describe("the operator's default for a folder", () => {
  let home = "";
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), "verify-"));
    await mkdir(join(home, "work", "deep", "er"), { recursive: true });
    await mkdir(join(home, "other"));
    await symlink(join(home, "work", "deep"), join(home, "link"));
  });
  afterAll(async () => rm(home, { recursive: true }));

  const found = async (cwd: string, folders: readonly string[]) => {
    const all = folders.map((folder) => ({ folder: join(home, folder), commands: [folder], ownTurns: true }));
    return (await defaultVerification(all, join(home, cwd)))?.commands;
  };

  it("the deepest folder around the session counts, whatever the order", async () => {
    expect(await found("work/deep/er", ["work", "work/deep", "."])).toEqual(["work/deep"]);
    expect(await found("work", ["work/deep", "."])).toEqual(["."]);
    expect(await found("other", ["work", "oth"])).toBeUndefined();
    expect(await found("work", ["missing"])).toBeUndefined();
  });

  it("links in either path lead to the real folder", async () => {
    expect(await found("link/er", ["work"])).toEqual(["work"]);
    expect(await found("work/deep/er", ["link"])).toEqual(["link"]);
  });

  it("a default has the usual attempts and time limit, and verifies Claude Code's own turns only if it says so", async () => {
    const folder = { folder: home, commands: ["true"] };
    const usual = { commands: ["true"], attempts: 1, timeoutMs: 600_000 };
    expect(await defaultVerification([folder], home)).toEqual(usual);
    expect(await defaultVerification([{ ...folder, ownTurns: true }], home)).toEqual({ ...usual, ownTurns: true });
  });
});
