import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { play, requestsOf } from "../support/one-turn.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const ok = [{ text: "ok" }];
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "new" } }] });

/** The files below a folder of Claude Code's configuration whose path names the session. */
function kept(folder: string, sessionId: string): string[] {
  const root = join(world.configFolder, folder);
  if (!existsSync(root)) return [];
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => path.includes(sessionId)).map((path) => join(root, path));
}

describe("an option of `claude_code` that names folders", () => {
  it("is where the work is done, and where else: `cwd`, `additionalDirectories`", async () => {
    const [cwd, other, third] = [world.folder(), world.folder(), world.folder()];
    const script = [bash("pwd > here.txt"), write(join(other, "a.txt")), write(join(third, "b.txt")), ...ok];
    const options = { cwd, permissionMode: "acceptEdits", advanced: { additionalDirectories: [other] } };
    const { actions } = await play(server, script, options);
    expect(readFileSync(join(cwd, "here.txt"), "utf8").trim()).toBe(cwd);
    expect(readFileSync(join(other, "a.txt"), "utf8")).toBe("new");
    // The third folder is asked for.
    expect(actions).toMatchObject([{ toolName: "Write", input: { file_path: join(third, "b.txt") } }]);
  });

  it("is that of the server when nothing is said: `cwd`", async () => {
    const { sessionId } = await play(server, ok, { advanced: { settingSources: [] } });
    expect(requestsOf(world, sessionId)[0]?.told).toContain(`Primary working directory: ${process.cwd()}`);
  });
});

describe("an option of `claude_code` about files", () => {
  it("leaves out settings: `settingSources`", async () => {
    const settings = join(world.configFolder, "settings.json");
    writeFileSync(settings, JSON.stringify({ env: { FROM_SETTINGS: "yes" } }));
    writeFileSync(join(world.configFolder, "CLAUDE.md"), "The user likes lighthouses.");
    const seen = async (options: object) => {
      const cwd = world.folder();
      const script = [bash('echo "[$FROM_SETTINGS]" > seen.txt'), ...ok];
      const { sessionId } = await play(server, script, { cwd, allowedTools: ["Bash"], ...options });
      const told = requestsOf(world, sessionId)[0]?.told ?? "";
      return [readFileSync(join(cwd, "seen.txt"), "utf8").trim(), told.includes("The user likes lighthouses.")];
    };
    expect(await seen({})).toEqual(["[yes]", true]);
    expect(await seen({ advanced: { settingSources: ["project"] } })).toEqual(["[]", false]);
  });

  it("keeps files as they were: `enableFileCheckpointing`", async () => {
    const backups = async (options: object) => {
      const cwd = world.folder();
      const file = join(cwd, "old.txt");
      writeFileSync(file, "old");
      const read = { tools: [{ name: "Read", input: { file_path: file } }] };
      const chosen = { cwd, permissionMode: "acceptEdits", ...options };
      const { sessionId } = await play(server, [read, write(file), ...ok], chosen);
      expect(readFileSync(file, "utf8")).toBe("new");
      return kept("file-history", sessionId)
        .filter((path) => !path.endsWith(sessionId))
        .map((path) => readFileSync(path, "utf8"));
    };
    expect(await backups({})).toEqual([]);
    expect(await backups({ advanced: { enableFileCheckpointing: true } })).toEqual(["old"]);
  });

  it("names the session and takes prompts as they are: `title`, `verbatimPrompts`", async () => {
    const told = async (options: object) => {
      const cwd = world.folder();
      writeFileSync(join(cwd, "note.txt"), "The tide is low.");
      const prompt = `Look at @note.txt ${scriptTag(ok)}`;
      const { sessionId } = await server.call("claude_code", { prompt, cwd, waitMs: 40_000, ...options });
      return { text: requestsOf(world, sessionId)[0]?.told ?? "", transcript: world.transcript(sessionId) };
    };
    const plain = await told({});
    expect(plain.text).toContain("The tide is low.");
    expect(plain.transcript).not.toContain("custom-title");
    const chosen = await told({ advanced: { title: "At the harbour", verbatimPrompts: true } });
    expect(chosen.text).toContain("Look at @note.txt");
    expect(chosen.text).not.toContain("The tide is low.");
    expect(chosen.transcript).toContain('"customTitle":"At the harbour"');
  });
});

describe("a debug log, as an option of `claude_code`", () => {
  it("is in Claude Code's own folder, or where it is said: `debug`, `debugFile`", async () => {
    const first = await play(server, ok, { cwd: world.folder(), advanced: { debug: true } });
    expect(kept("debug", first.sessionId)).toHaveLength(1);
    const file = join(world.folder(), "own.log");
    const second = await play(server, ok, { cwd: world.folder(), advanced: { debugFile: file } });
    expect(readFileSync(file, "utf8")).toContain("[DEBUG]");
    expect(kept("debug", second.sessionId)).toEqual([]);
    const third = await play(server, ok, { cwd: world.folder() });
    expect(kept("debug", third.sessionId)).toEqual([]);
  });

  it("is refused outside the folders that the operator allows: `debugFile`", async () => {
    const cwd = world.folder();
    const outside = world.folder();
    const confined = await world.server({ args: ["--allow-dir", cwd] });
    const refusal = async (debugFile: string) =>
      (await confined.refusal("claude_code", { prompt: "x", cwd, advanced: { debugFile } })).text;
    mkdirSync(join(cwd, "logs"));
    writeFileSync(join(outside, "there.log"), "");
    symlinkSync(join(outside, "there.log"), join(cwd, "link.log"));
    symlinkSync(join(outside, "new.log"), join(cwd, "loose.log"));
    expect(await refusal(join(outside, "a.log"))).toContain("--allow-dir");
    expect(await refusal("../a.log")).toContain("--allow-dir");
    expect(await refusal(join(cwd, "link.log"))).toContain("--allow-dir");
    expect(await refusal(join(cwd, "loose.log"))).toContain("leads nowhere");
    expect(await refusal(join(cwd, "none", "a.log"))).toContain("does not exist");
    expect(await refusal(join(cwd, "logs"))).toContain("is a folder");
    const started = await play(confined, ok, { cwd, advanced: { debugFile: "logs/a.log" } });
    expect(started.result?.result).toBe("ok");
    expect(readFileSync(join(cwd, "logs/a.log"), "utf8")).toContain("[DEBUG]");
  });
});
