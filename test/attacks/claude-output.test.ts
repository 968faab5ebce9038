import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";
import { HOSTILE_CLAUDE, type Misbehaviour } from "../kit/attacks/hostile-claude.ts";

/** No output of a Claude Code can end another session or the server. */

const world = useWorld();
let server: Server;
/** Session of the real Claude Code that asks during the misbehavior of `hostile`; it has a turn for each row. */
let neighbour: { sessionId: string; cwd: string };
beforeAll(async () => {
  server = await world.server();
  const prompt = scriptTag([{ text: "Here." }]);
  const cwd = world.folder();
  const { sessionId } = await server.call("claude_code", { prompt, cwd, waitMs: 40_000 });
  neighbour = { sessionId, cwd };
});

const requests = (id: string, request: object = {}): string =>
  JSON.stringify({
    type: "control_request",
    request_id: id,
    request: { subtype: "can_use_tool", tool_name: "Bash", input: { command: "true" }, tool_use_id: "t", ...request },
  });

/** Messages that no Claude Code writes: valid JSON with missing or wrong fields. */
const ODD: readonly unknown[] = [
  { type: 5 },
  { type: "__proto__" },
  { type: "constructor" },
  { type: "control_request" },
  { type: "control_request", request: null },
  { type: "control_request", request_id: 1, request: { subtype: "can_use_tool" } },
  { type: "control_request", request_id: "b", request: { subtype: "hook_callback" } },
  { type: "control_request", request_id: "c", request: { subtype: "mcp_message", server_name: "x" } },
  { type: "control_request", request_id: "d", request: { subtype: "elicitation" } },
  { type: "control_cancel_request" },
  { type: "transcript_mirror" },
  { type: "result" },
  { type: "result", subtype: "success", is_error: false, result: 5, usage: 5 },
  { type: "result", subtype: 5, is_error: 5, result: "", num_turns: "x", total_cost_usd: null, duration_ms: {} },
  { type: "assistant" },
  { type: "assistant", message: null },
  { type: "assistant", message: { content: 5 } },
  { type: "assistant", error: {}, message: { content: [{ type: "tool_use", id: 5, name: 5, input: 5 }] } },
  { type: "assistant", session_id: 5, message: { content: [null] } },
  { type: "assistant", session_id: "../../x", message: { content: [] } },
  { type: "user" },
  { type: "system" },
  { type: "system", subtype: "init", model: 5, permissionMode: { a: 1 } },
  { type: "system", subtype: "background_tasks_changed", tasks: [null] },
  { type: "system", subtype: "background_tasks_changed", tasks: [{ task_id: 5, task_type: 5, description: 5 }] },
  { type: "system", subtype: "task_started", task_id: 5, task_type: "local_agent" },
  { type: "system", subtype: "local_command_output", content: 5 },
  { type: "system", subtype: "informational", content: {}, level: "warning" },
  { type: "system", subtype: "session_state_changed", state: "running", uuid: 5 },
  { type: "system", subtype: "session_state_changed" },
  { type: "system", subtype: "status", permissionMode: "x" },
  { type: "system", subtype: "task_progress", task_id: {}, summary: {} },
  { type: "system", subtype: "api_retry" },
  { type: "command_lifecycle" },
  { type: "stream_event" },
];

const message = (content: string): string => `{"type":"assistant","message":{"content":[${content}]}}`;

/** Name, misbehavior, and error of the turn. */
const ROWS: readonly (readonly [string, Misbehaviour, RegExp])[] = [
  ["560 MB without a line break", { megabytes: 560 }, /more than 67108864 bytes without a line break/],
  ["560 MB without a line break on stderr", { megabytes: 560, stream: "stderr" }, /exited with code 3/],
  ["a message of 600,000 values", { lines: [message("0,".repeat(600_000) + "0")] }, /more than 500000 values/],
  ["a message nested 2,000 deep", { lines: [message("[".repeat(2_000) + "]".repeat(2_000))] }, /more than 1000 deep/],
  ["messages of odd form", { lines: ODD.map((each) => JSON.stringify(each)) }, /exited with code 3/],
  ["null", { lines: ["null"] }, /exited with code 3/],
  ["an answer to nothing", { lines: ['{"type":"control_response"}'] }, /exited with code 3/],
  [
    "an event without its content",
    { lines: ['{"type":"stream_event","parent_tool_use_id":null}'] },
    /exited with code 3/,
  ],
  ["50,000 lines of invalid JSON", { repeat: "no JSON #\n", times: 50_000 }, /exited with code 3/],
  ["5,000 permission requests by one id", { repeat: `${requests("a")}\n`, times: 5_000 }, /exited with code 3/],
  ["5,000 permission requests", { repeat: `${requests("#")}\n`, times: 5_000 }, /exited with code 3/],
];

it.each(ROWS)("a Claude Code that writes %s loses its own turn, and no other", async (_, misbehaviour, told) => {
  const { cwd, sessionId } = neighbour;
  const file = join(cwd, `${randomUUID()}.txt`);
  const write = { name: "Write", input: { file_path: file, content: "x" } };
  const prompt = scriptTag([{ tools: [write] }, { text: "Done." }]);
  const replied = await server.call("claude_code_reply", { sessionId, prompt });
  const asked = await server.news(sessionId, replied.nextCursor);

  const lost = await hostile(misbehaviour);
  expect(lost).toMatchObject({ status: "error", result: { isError: true } });
  // `start_failed` if the misbehavior comes before Claude Code has reported its start.
  expect(["lost", "start_failed"]).toContain(lost.result?.errorSubtype);
  expect(lost.result?.result).toMatch(told);
  // The log does not hold the refused message: `nextCursor` stays small.
  expect(lost.nextCursor).toBeLessThan(1_000);

  const [action] = asked.actions;
  const answer = { action: "respond_permission", sessionId, requestId: action?.requestId, decision: "allow" };
  const answered = await server.call("claude_code_check", { ...answer, cursor: asked.nextCursor });
  const done = answered.result ? answered : await server.end(sessionId, answered.nextCursor);
  expect(done).toMatchObject({ status: "idle", result: { result: "Done.", isError: false } });
  expect(server.stderr()).not.toContain("uncaught exception");
  const { sessions } = await server.call("claude_code_session", { action: "get", sessionId });
  expect(sessions).toMatchObject([{ processStarts: 1 }]);
});

async function hostile(misbehaviour: Misbehaviour): Promise<Answer> {
  const { sessionId } = await server.call("claude_code", {
    prompt: JSON.stringify(misbehaviour),
    cwd: world.folder(),
    advanced: { pathToClaudeCodeExecutable: HOSTILE_CLAUDE },
  });
  for (;;) {
    const poll = { action: "poll", sessionId, waitMs: 40_000, until: "end" };
    const answer = await server.call("claude_code_check", poll);
    if (answer.result) return answer;
  }
}
