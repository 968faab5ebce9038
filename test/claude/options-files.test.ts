import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import { runScript, requestsOf, readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const ok = [{ text: "ok" }];
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const read = (file: string) => ({ tools: [{ name: "Read", input: { file_path: file } }] });
const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "new" } }] });

interface Ran extends Answer {
  cwd: string;
  /** First request to the model: `readWholeLog`. */
  context: string;
}

const world = useWorld();
let server: Server;
/** Returns the only file in another folder. */
let file: (name: "added" | "third") => string;
/** Sessions with equal scripts; only `chosen` has options. */
let chosen: Ran;
let plain: Ran;
beforeAll(async () => {
  server = await world.server();
  writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify({ env: { FROM_SETTINGS: "yes" } }));
  writeFileSync(join(world.configFolder, "CLAUDE.md"), "The user likes lighthouses.");
  const folders = { added: world.folder(), third: world.folder() };
  file = (name) => join(folders[name], "a.txt");
  plain = await run({});
  chosen = await run(
    {
      settingSources: ["project"],
      enableFileCheckpointing: true,
      title: "At the harbour",
      verbatimPrompts: true,
      debug: true,
      additionalDirectories: [folders.added],
    },
    [write(file("added")), write(file("third"))],
  );
});

/** Runs a session that reads, changes a file, and makes the calls `more`. */
async function run(advanced: object, more: object[] = []): Promise<Ran> {
  const cwd = world.folder();
  const old = join(cwd, "old.txt");
  writeFileSync(old, "old");
  writeFileSync(join(cwd, "note.txt"), "The tide is low.");
  const script = [bash('pwd > here.txt; echo "[$FROM_SETTINGS]" > seen.txt'), read(old), write(old), ...more, ...ok];
  const prompt = `Look at @note.txt ${scriptTag(script)}`;
  const options = { cwd, permissionMode: "acceptEdits", allowedTools: ["Bash"], advanced };
  const { sessionId } = await server.call("claude_code", { prompt, waitMs: 40_000, ...options });
  expect(readFileSync(old, "utf8")).toBe("new");
  return { ...(await readWholeLog(server, sessionId)), cwd, context: requestsOf(world, sessionId)[0]?.told ?? "" };
}

/** Returns files in a folder of Claude Code's configuration with `sessionId` in their path. */
function kept(folder: string, { sessionId }: { sessionId: string }): string[] {
  const root = join(world.configFolder, folder);
  if (!existsSync(root)) return [];
  const paths = readdirSync(root, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => path.includes(sessionId)).map((path) => join(root, path));
}

describe("an option of `claude_code` about files", () => {
  it("`cwd` and `additionalDirectories` set the working folder and further folders", () => {
    expect(readFileSync(join(chosen.cwd, "here.txt"), "utf8").trim()).toBe(chosen.cwd);
    expect(readFileSync(file("added"), "utf8")).toBe("new");
    // A write to the third folder needs approval.
    expect(chosen.actions).toMatchObject([{ toolName: "Write", input: { file_path: file("third") } }]);
  });

  it("`settingSources` leaves out settings", () => {
    const seen = ({ context, cwd }: Ran) => [
      readFileSync(join(cwd, "seen.txt"), "utf8").trim(),
      context.includes("The user likes lighthouses."),
    ];
    expect(seen(plain)).toEqual(["[yes]", true]);
    expect(seen(chosen)).toEqual(["[]", false]);
  });

  it("`enableFileCheckpointing` keeps the former content of files", () => {
    const backups = (ran: Ran) =>
      kept("file-history", ran)
        .filter((path) => !path.endsWith(ran.sessionId))
        .map((path) => readFileSync(path, "utf8"));
    expect(backups(plain)).toEqual([]);
    expect(backups(chosen)).toEqual(["old"]);
  });

  it("`title` names the session, and `verbatimPrompts` sends prompts unchanged", () => {
    expect(plain.context).toContain("The tide is low.");
    expect(world.transcript(plain.sessionId)).not.toContain("custom-title");
    expect(chosen.context).toContain("Look at @note.txt");
    expect(chosen.context).not.toContain("The tide is low.");
    expect(world.transcript(chosen.sessionId)).toContain('"customTitle":"At the harbour"');
  });
});

describe("a debug log, as an option of `claude_code`", () => {
  it("the debug log is in Claude Code's own folder (`debug`) or in `debugFile`; `cwd` defaults to the server's", async () => {
    expect(kept("debug", plain)).toEqual([]);
    expect(kept("debug", chosen)).toHaveLength(1);
    const debugFile = join(world.folder(), "own.log");
    const elsewhere = await runScript(server, ok, { advanced: { debugFile, settingSources: [] } });
    expect(readFileSync(debugFile, "utf8")).toContain("[DEBUG]");
    expect(kept("debug", elsewhere)).toEqual([]);
    expect(requestsOf(world, elsewhere.sessionId)[0]?.told).toContain(`Primary working directory: ${process.cwd()}`);
  });

  it("`debugFile` is refused outside the folders that the operator allows", async () => {
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
    expect(await refusal(join(cwd, "loose.log"))).toContain("is a broken symbolic link");
    expect(await refusal(join(cwd, "none", "a.log"))).toContain("does not exist");
    expect(await refusal(join(cwd, "logs"))).toContain("is a folder");
    const started = await runScript(confined, ok, { cwd, advanced: { debugFile: "logs/a.log" } });
    expect(started.result?.result).toBe("ok");
    expect(readFileSync(join(cwd, "logs/a.log"), "utf8")).toContain("[DEBUG]");
  });
});
