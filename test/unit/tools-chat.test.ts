import { describe, expect, it } from "vitest";
import { adaptAdvice } from "../../src/tools/errors.ts";
import { listToolNames } from "../../src/tools/tool-names.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { runTool, tools } from "../kit/tools/run.ts";

const CHAT = listToolNames(["chat"], { enabled: true });
const AGENT = listToolNames(["agent"], { enabled: true });

describe("activeSessions of claude_session_close", () => {
  it("`activeSessions` counts the other open sessions, including those without a Claude Code", async () => {
    const engine = new FakeEngine();
    for (const id of ["s1", "s2", "s3", "s4"]) engine.add(id);
    for (const id of ["s1", "s4"]) await engine.cancel("local", id, { by: "caller" });
    const reply = await runTool(tools.get("claude_session_close")!, { sessionId: "s1" }, callOf(), depsOf(engine));
    expect(reply.structured).toEqual({ sessionId: "s1", activeSessions: 2 });
  });
});

describe("the answer of claude_session_create", () => {
  it("`claude_session_create` warns of omitted content, and of nothing else", async () => {
    const engine = new FakeEngine();
    const create = async () => runTool(tools.get("claude_session_create")!, { cwd: "/x" }, callOf(), depsOf(engine));
    expect((await create()).structured).not.toHaveProperty("warnings");
    engine.create = async () => Promise.resolve({ sessionId: engine.add("s9").id, withheld: ["a rule: left out."] });
    expect((await create()).structured).toMatchObject({ sessionId: "s9", warnings: ["a rule: left out."] });
  });
});

it.each(["cwd", "model", "permissionMode", "systemPrompt"])(
  "claude_session_create refuses %s together with the id of a known session",
  async (name) => {
    const value = { cwd: "/x", model: "opus", permissionMode: "plan" }[name] ?? "x";
    const engine = new FakeEngine();
    engine.add("s1");
    const args = { sessionId: "s1", [name]: value };
    const { text } = await runTool(tools.get("claude_session_create")!, args, callOf(), depsOf(engine));
    expect(text).toContain(`[INVALID_ARGUMENT]: ${name}: is only for a new session`);
  },
);

describe("an error message", () => {
  const nowhere = "There is no session s9. List the sessions with claude_code_session (action: list), or start one.";
  const busy = "The session is busy. Wait for its end with claude_code_check (until: end), or send it later.";

  it.each([
    ["SESSION_NOT_FOUND", nowhere, AGENT, nowhere],
    ["SESSION_NOT_FOUND", nowhere, CHAT, "There is no session s9. Open one with claude_session_create."],
    ["SESSION_NOT_FOUND", nowhere, ["claude_code_query"], "There is no session s9. Start one with claude_code_query."],
    ["SESSION_NOT_FOUND", nowhere, ["claude_code_configure"], "There is no session s9."],
    ["SESSION_BUSY", busy, CHAT, "The session is busy. Wait for its reply, or end it with claude_chat_interrupt."],
    // The description of the fault may repeat the caller's words.
    ["INVALID_ARGUMENT", "cwd: /claude_code does not exist. Make it.", CHAT, undefined],
    ["INVALID_ARGUMENT", "cwd: claude_code is a file. Name a folder. Do it now.", CHAT, undefined],
  ] as const)("the error message of %s names only tools that are listed: %s", (code, message, listed, advice) => {
    expect(adaptAdvice(code, message, listed)).toBe(advice ?? message);
  });

  it("the error message of a call names no tool that is not listed", async () => {
    const deps = { ...depsOf(new FakeEngine()), listed: CHAT };
    const args = { sessionId: "s9", prompt: "x" };
    const { text } = await runTool(tools.get("claude_chat_query")!, args, callOf(), deps);
    expect(text).toBe("Error [SESSION_NOT_FOUND]: There is no session s9. Open one with claude_session_create.");
  });
});
