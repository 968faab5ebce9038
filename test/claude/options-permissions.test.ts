import { existsSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { runScript, requestsOf, readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  // Claude Code refuses bypassPermissions to root unless IS_SANDBOX is set. test/server/arguments.test.ts tests the closed
  // gate.
  server = await world.server({ args: ["--allow-bypass"], env: { IS_SANDBOX: "1" } });
});

const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] });
const program = (file: string) => ({
  tools: [{ name: "Bash", input: { command: `node -e 'fs.writeFileSync("${file}", "x")'` } }],
});

/** Opens a session that has had a turn. */
async function open(options: object) {
  const cwd = world.folder();
  const { sessionId } = await runScript(server, [{ text: "ok" }], { cwd, ...options });
  return { sessionId, cwd };
}

/** Writes a file and runs a program in a session, denying every request; returns "asked", "ran" or "denied" for both. */
async function outcomesOf({ cwd, sessionId }: { cwd: string; sessionId: string }, name: string) {
  const files = { Write: join(cwd, `${name}-written.txt`), Bash: join(cwd, `${name}-ran.txt`) };
  const script = [write(files.Write), program(files.Bash), { text: `end of ${name}` }];
  await server.call("claude_code_reply", { sessionId, prompt: scriptTag(script), waitMs: 40_000 });
  let answer = await readWholeLog(server, sessionId);
  const asked: string[] = [];
  while (answer.actions.length > 0) {
    const [{ requestId, toolName } = { requestId: "", toolName: "" }] = answer.actions;
    asked.push(toolName);
    answer = await server.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      requestId,
      decision: "deny",
    });
  }
  expect(answer.result).toMatchObject({ isError: false, result: `end of ${name}` });
  const outcome = (tool: "Write" | "Bash") =>
    asked.includes(tool) ? "asked" : existsSync(files[tool]) ? "ran" : "denied";
  return `Write ${outcome("Write")}, Bash ${outcome("Bash")}`;
}

const modeOf = async (sessionId: string) =>
  (await server.call("claude_code_session", { action: "get", sessionId })).sessions[0]?.["permissionMode"];

// Measured without access to the classifier of `auto` and `plan`, which then deny.
describe("a `permissionMode` of `claude_code`", () => {
  let living: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    living = await open({ permissionMode: "auto" });
  });

  it.each([
    ["auto", "Write ran, Bash denied"],
    ["default", "Write asked, Bash asked"],
    ["acceptEdits", "Write ran, Bash asked"],
    ["dontAsk", "Write denied, Bash denied"],
  ])("a mode decides which tools run, ask and are denied: %s", async (permissionMode, expected) => {
    const { sessionId } = living;
    // The session starts in `auto`; every mode reaches Claude Code unchanged, at the start or later.
    if (permissionMode !== "auto") {
      await server.call("claude_code_session", { action: "set_permission_mode", sessionId, permissionMode });
    }
    expect(await outcomesOf(living, permissionMode)).toBe(expected);
    expect(await modeOf(sessionId)).toBe(permissionMode);
  });

  it("bypassPermissions runs all tools", async () => {
    const session = await open({ permissionMode: "bypassPermissions" });
    expect(await outcomesOf(session, "it")).toBe("Write ran, Bash ran");
    expect(await modeOf(session.sessionId)).toBe("bypassPermissions");
  });

  it("plan asks for edits, denies commands, and adds the instructions of `planModeInstructions`", async () => {
    const advanced = { planModeInstructions: "First draw a map of the harbour." };
    const session = await open({ permissionMode: "plan", advanced });
    expect(await outcomesOf(session, "it")).toBe("Write asked, Bash denied");
    expect(await modeOf(session.sessionId)).toBe("plan");
    expect(requestsOf(world, session.sessionId)[0]?.told).toContain("First draw a map of the harbour.");
  });

  it("a mode that Claude Code no longer has is refused, and the valid modes are named", async () => {
    const refused = await server.refusal("claude_code", { prompt: "x", permissionMode: "delegate" });
    expect(refused.code).toBe("INVALID_ARGUMENT");
    expect(refused.text).toContain("no longer exists in Claude Code");
    for (const mode of ["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"]) {
      expect(refused.text).toContain(mode);
    }
  });
});

describe("an option of `claude_code` that decides about tools", () => {
  it("`allowedTools` and `disallowedTools` run and deny by rule; `permissionRequestTimeoutMs` counts from a request's creation", async () => {
    const cwd = world.folder();
    const [ran, kept] = [join(cwd, "ran.txt"), join(cwd, "kept.txt")];
    const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
    const asked = "mkdir asked";
    const script = [bash(`touch ${ran}`), bash(`rm ${ran}`), write(kept), bash(asked), { text: "end" }];
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag(script),
      cwd,
      allowedTools: ["Bash(touch *)", "Bash(rm *)", "Write"],
      disallowedTools: ["Bash(rm *)", "Write"],
      permissionRequestTimeoutMs: 1000,
    });
    await server.call("claude_code_check", { action: "poll", sessionId, until: "end", waitMs: 40_000 });
    const { events, result } = await readWholeLog(server, sessionId);
    expect(result?.result).toBe("end");
    // Deny beats allow, and a tool denied as a whole, `Write`, is not even offered.
    expect([existsSync(ran), existsSync(kept)]).toEqual([true, false]);
    const tools = requestsOf(world, sessionId)[0]?.tools;
    expect(tools).toContain("Edit");
    expect(tools).not.toContain("Write");

    const of = (wanted: string) => events.filter(({ type }) => type === wanted);
    const [requests, results] = [of("permission_request"), of("permission_result")];
    expect(requests.map(({ data }) => data)).toMatchObject([
      { toolName: "Bash", summary: expect.stringContaining(asked) },
    ]);
    // Denials by rule leave a result without a request.
    const last = results.at(-1);
    expect(last?.data).toMatchObject({ decision: "deny", by: "timeout" });
    const waited = Date.parse(last?.timestamp ?? "") - Date.parse(requests[0]?.timestamp ?? "");
    // Without `permissionRequestTimeoutMs`, the limit is 60 s from the first display.
    expect(waited).toBeGreaterThanOrEqual(950);
    expect(waited).toBeLessThan(20_000);
  });

  it("`permissionPrompts` none denies without a request", async () => {
    const session = await open({ advanced: { permissionPrompts: "none" } });
    expect(await outcomesOf(session, "it")).toBe("Write denied, Bash denied");
    const { events } = await readWholeLog(server, session.sessionId);
    expect(events.map(({ type }) => type)).not.toContain("permission_request");
    expect(JSON.stringify(events)).toContain("this session has no approval surface");
  });
});
