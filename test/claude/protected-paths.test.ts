import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { scriptTag } from "../../src/demo/model/script.ts";
import { runScript } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Protection of the server's own files and Claude Code's configuration from a session in the home folder around them. */

const world = useWorld();
let server: Server;
/** Home folder, with `configFolder` in it. */
let home: string;
const at = (...parts: string[]) => join(home, ...parts);

function put(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

beforeAll(async () => {
  home = realpathSync(dirname(world.configFolder));
  put(at("plain.txt"), "SECRET plain");
  put(at("etc", "config.json"), JSON.stringify({ logLevel: "debug" }));
  put(at("odd [1] {x} (y),z", "audit.jsonl"), "");
  put(at(".local/state/claude-agents-mcp/http-token"), "SECRET token");
  put(at(".cache/claude-agents-mcp/compiled/code"), "SECRET code");
  put(at(".claude/settings.json"), '{"env": {"A": "SECRET"}}');
  put(at(".claude.json.backup"), "SECRET");
  put(at("ada/settings.json"), "SECRET of ada");
  const own = world.configFolder;
  put(join(own, "settings.json"), '{"env": {"A": "SECRET"}}');
  put(join(own, "CLAUDE.md"), "The password is SWORDFISH.");
  put(join(own, "claude-agents-mcp/untrusted/notes"), "SECRET");
  put(join(own, "projects/a/other.jsonl"), "SECRET transcript");
  put(join(own, "projects/a/memory/MEMORY.md"), "SECRET memory");
  put(join(own, "plans/plan.md"), "SECRET plan");
  symlinkSync(join(own, "settings.json"), at("link.json"));
  symlinkSync(at(".local/state"), at("linked"));
  const principals = { ada: { claudeConfigDir: at("ada") } };
  const args = ["--config", at("etc/config.json"), "--audit-log", at("odd [1] {x} (y),z", "audit.jsonl")];
  args.push("--store", at("sessions.db"), "--principals", JSON.stringify(principals), "--allow-bypass");
  server = await world.server({ args, env: { IS_SANDBOX: "1" } });
});

/** Protected paths, in spellings that a session may use. */
const CLOSED: (() => string)[] = [
  () => at(".local/state/claude-agents-mcp/http-token"),
  () => "~/.local/state/claude-agents-mcp/http-token",
  () => ".local/state/claude-agents-mcp/http-token",
  () => ` ${at(".local/state/claude-agents-mcp/http-token")}`,
  () => at("linked/claude-agents-mcp/http-token"),
  () => `/proc/self/cwd/.local/state/claude-agents-mcp/http-token`,
  () => `/proc/self/root${at(".local/state/claude-agents-mcp/http-token")}`,
  () => at("sessions.db"),
  () => at("sessions.db-wal"),
  () => at("etc/config.json"),
  () => at("odd [1] {x} (y),z", "audit.jsonl"),
  () => at(".cache/claude-agents-mcp/compiled/code"),
  () => at(".claude/settings.json"),
  () => at(".claude.json.backup"),
  () => at("ada/settings.json"),
  () => at("link.json"),
  () => join(world.configFolder, "settings.json"),
  () => join(world.configFolder, "SETTINGS.json"),
  () => join(world.configFolder, ".claude.json"),
  () => join(world.configFolder, "claude-agents-mcp/untrusted/notes"),
  () => join(world.configFolder, "claude-agents-mcp/untrusted/.claude/settings.json"),
  () => join(world.configFolder, "projects/a/other.jsonl"),
  () => join(world.configFolder, "agents/agent.md"),
  () => join(world.configFolder, "plansx"),
  () => join(world.configFolder, "pla"),
  () => join(world.configFolder, "a-name-of-tomorrow"),
  () => process.execPath,
];

interface Call {
  name: string;
  input: Record<string, unknown>;
}
const read = (path: string): Call => ({ name: "Read", input: { file_path: path } });
const write = (path: string): Call => ({ name: "Write", input: { file_path: path, content: "SECRET x" } });

const Line = z.looseObject({ type: z.string(), message: z.looseObject({ content: z.unknown() }).optional() });
const Result = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  is_error: z.boolean().optional(),
  content: z.unknown(),
});

/** Matches refusals by the protecting rule or hook only, because a call beside a failing call may fail for another reason. */
const REFUSED = /^refused: .*(denied by your permission settings|Read deny rule|No session may reach)/;

/** Returns id and result of each call of a session, from Claude Code's transcript. */
function resultsOf(sessionId: string): [id: string, result: string][] {
  const lines = world
    .transcript(sessionId)
    .split("\n")
    .filter((line) => line !== "");
  return lines.flatMap((line) => {
    const { message, type } = Line.parse(JSON.parse(line));
    // Lines of other types repeat content already sent to the model.
    const content = type === "user" ? message?.content : undefined;
    const blocks = Array.isArray(content) ? content.map((each: unknown) => Result.safeParse(each)) : [];
    return blocks.flatMap(({ data }): [string, string][] =>
      data
        ? [[data.tool_use_id, `${data.is_error === true ? "refused" : "done"}: ${JSON.stringify(data.content)}`]]
        : [],
    );
  });
}

/** Session id by permission mode. */
const sessions = new Map<string, string>();

/** Makes all calls in a single answer of the model; returns results in the order of `calls`. */
async function run(calls: Call[], permissionMode: string) {
  const tools = calls.map((call) => ({ ...call, id: `toolu_${randomUUID()}` }));
  const prompt = `${scriptTag([{ tools }, { text: "end" }])} @${at(".local/state/claude-agents-mcp/http-token")}`;
  const before = sessions.get(permissionMode);
  const start = { cwd: home, permissionMode, allowedTools: ["Read", "Write", "Edit", "Bash"] };
  const { sessionId } = await (before === undefined
    ? server.call("claude_code", { prompt, ...start, waitMs: 40_000 })
    : server.call("claude_code_reply", { prompt, sessionId: before, waitMs: 40_000 }));
  sessions.set(permissionMode, sessionId);
  const { status } = await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
  // Claude Code runs some calls concurrently, so that results need sorting.
  const results = resultsOf(sessionId);
  const inOrder = tools.flatMap(({ id }) => results.filter(([of]) => of === id).map(([, result]) => result));
  return { status, results: inOrder, sessionId };
}

describe("protected paths", () => {
  it.each(["default", "acceptEdits", "bypassPermissions"])(
    "a protected path is neither read nor written in any spelling, in permission mode %s",
    async (permissionMode) => {
      const paths = CLOSED.map((path) => path());
      const calls = [...paths.map(read), ...paths.map(write)];
      const { results, sessionId, status } = await run(calls, permissionMode);

      expect(status).toBe("idle");
      expect(results.length).toBe(calls.length);
      const reached = results.flatMap((result, index) => (REFUSED.test(result) ? [] : [JSON.stringify(calls[index])]));
      expect(reached).toEqual([]);
      expect(world.transcript(sessionId)).not.toContain("SECRET token");
      expect(readFileSync(at(".local/state/claude-agents-mcp/http-token"), "utf8")).toBe("SECRET token");
      expect(existsSync(join(world.configFolder, "a-name-of-tomorrow"))).toBe(false);
    },
  );

  it("the rest of the home folder and Claude Code's session files are not protected", async () => {
    const own = world.configFolder;
    const reads = [at("plain.txt"), join(own, "plans/plan.md"), join(own, "projects/a/memory/MEMORY.md")];
    const writes = [at("new.txt"), join(own, "plans/other.md"), join(own, "projects/a/memory/more.md")];
    const { results, sessionId } = await run([...reads.map(read), ...writes.map(write)], "bypassPermissions");
    // Claude Code itself reads CLAUDE.md of the folder.
    expect(results.map((result) => result.slice(0, 4))).toEqual(Array(6).fill("done"));
    expect(
      world.model.requests.some((each) => each.sessionId === sessionId && JSON.stringify(each).includes("SWORDFISH")),
    ).toBe(true);
  });

  it("a protected path is refused as folder, file or attachment of a session, even through a link", async () => {
    const prompt = scriptTag([{ text: "end" }]);
    const state = at(".local/state/claude-agents-mcp");
    const folders = [
      state,
      at("linked/claude-agents-mcp"),
      world.configFolder,
      join(world.configFolder, "plans"),
      at("ada"),
    ];
    const asFolder = folders.flatMap((folder) => [
      { argument: "cwd", args: { cwd: folder } },
      { argument: "additionalDirectories[0]", args: { cwd: home, advanced: { additionalDirectories: [folder] } } },
    ]);
    const debugFile = at("linked/claude-agents-mcp/new.log");
    const more = [
      { argument: "debugFile", args: { cwd: home, advanced: { debugFile } } },
      { argument: "attachments[0].path", args: { cwd: home, attachments: [{ path: join(state, "http-token") }] } },
    ];
    for (const { args, argument } of [...asFolder, ...more]) {
      const refused = await server.refusal("claude_code", { prompt, ...args });
      expect({ argument, code: refused.code }).toEqual({ argument, code: "INVALID_ARGUMENT" });
      expect(refused.text).toContain(`${argument}: `);
      expect(refused.text).toContain("sessions cannot work there");
    }
  });

  it("an answer cannot replace a path with a protected path, or add a protected folder", async () => {
    const { actions, sessionId } = await runScript(server, [{ tools: [write(at("new-here.txt"))] }, { text: "end" }], {
      cwd: home,
    });
    const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
    for (const file_path of [join(world.configFolder, "settings.json"), at("linked/claude-agents-mcp/http-token")]) {
      const updatedInput = { file_path, content: "x" };
      const refused = await server.refusal("claude_code_check", { ...answer, permissionOptions: { updatedInput } });
      expect(refused).toMatchObject({
        code: "PERMISSION_DENIED",
        text: expect.stringContaining("updatedInput: No session may reach "),
      });
    }
    const updatedPermissions = [{ type: "addDirectories", directories: [at(".local/state/claude-agents-mcp")] }];
    const opened = { ...answer, permissionOptions: { updatedPermissions } };
    expect(await server.refusal("claude_code_check", opened)).toMatchObject({ code: "INVALID_ARGUMENT" });
    await server.call("claude_code_session", { action: "cancel", sessionId });
  });
});
