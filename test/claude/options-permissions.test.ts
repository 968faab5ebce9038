import { existsSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { play, requestsOf, told } from "../support/one-turn.ts";
import type { Server } from "../support/stdio-server.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] });
const program = (file: string) => ({
  tools: [{ name: "Bash", input: { command: `node -e 'fs.writeFileSync("${file}", "x")'` } }],
});

/** What becomes of a file that is written and of a program that is run; whatever is asked is denied. */
async function fates(on: Server, options: object) {
  const cwd = world.folder();
  const files = { Write: join(cwd, "written.txt"), Bash: join(cwd, "ran.txt") };
  const script = [write(files.Write), program(files.Bash), { text: "end" }];
  let answer = await play(on, script, { cwd, ...options });
  const asked: string[] = [];
  const { sessionId } = answer;
  while (answer.actions.length > 0) {
    const [{ requestId, toolName } = { requestId: "", toolName: "" }] = answer.actions;
    asked.push(toolName);
    answer = await on.call("claude_code_check", {
      action: "respond_permission",
      sessionId,
      requestId,
      decision: "deny",
    });
  }
  expect(answer.result).toMatchObject({ isError: false, result: "end" });
  const fate = (tool: "Write" | "Bash") =>
    asked.includes(tool) ? "asked" : existsSync(files[tool]) ? "ran" : "denied";
  return { sessionId, fate: `Write ${fate("Write")}, Bash ${fate("Bash")}` };
}

describe("a `permissionMode` of `claude_code`", () => {
  // As measured with the classifier of `auto` and `plan` out of reach: they deny what it would have to decide.
  it.each([
    ["default", "Write asked, Bash asked"],
    ["acceptEdits", "Write ran, Bash asked"],
    ["plan", "Write asked, Bash denied"],
    ["dontAsk", "Write denied, Bash denied"],
    ["auto", "Write ran, Bash denied"],
  ])("decides what is asked, run and denied: %s", async (permissionMode, expected) => {
    const { fate, sessionId } = await fates(server, { permissionMode });
    expect(fate).toBe(expected);
    const { sessions } = await server.call("claude_code_session", { action: "get", sessionId });
    expect(sessions).toMatchObject([{ permissionMode }]);
  });

  it("bypassPermissions runs all, where the operator allows it", async () => {
    const refused = await server.refusal("claude_code", { prompt: "x", permissionMode: "bypassPermissions" });
    expect(refused.code).toBe("PERMISSION_DENIED");
    expect(refused.text).toContain("--allow-bypass");
    // Claude Code refuses it to root unless it is told that it is confined.
    const open = await world.server({ args: ["--allow-bypass"], env: { IS_SANDBOX: "1" } });
    expect((await fates(open, { permissionMode: "bypassPermissions" })).fate).toBe("Write ran, Bash ran");
  });

  it("that Claude Code no longer has is refused, and those that it has are named", async () => {
    const refused = await server.refusal("claude_code", { prompt: "x", permissionMode: "delegate" });
    expect(refused.code).toBe("INVALID_ARGUMENT");
    expect(refused.text).toContain("no longer exists in Claude Code");
    for (const mode of ["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"]) {
      expect(refused.text).toContain(mode);
    }
  });
});

describe("an option of `claude_code` that decides", () => {
  it("runs and denies by rule: `allowedTools`, `disallowedTools`", async () => {
    const cwd = world.folder();
    const [ran, kept] = [join(cwd, "ran.txt"), join(cwd, "kept.txt")];
    const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
    const script = [bash(`touch ${ran}`), bash(`rm ${ran}`), write(kept), { text: "end" }];
    const { sessionId, result, actions } = await play(server, script, {
      cwd,
      allowedTools: ["Bash(touch *)", "Bash(rm *)", "Write"],
      disallowedTools: ["Bash(rm *)", "Write"],
    });
    expect({ result, actions }).toMatchObject({ result: { result: "end" }, actions: [] });
    // What is denied beats what is allowed; a tool that is denied whole is not even offered.
    expect([existsSync(ran), existsSync(kept)]).toEqual([true, false]);
    const tools = requestsOf(world, sessionId)[0]?.tools;
    expect(tools).toContain("Edit");
    expect(tools).not.toContain("Write");
  });

  it("counts a request's time from its creation: `permissionRequestTimeoutMs`", async () => {
    const cwd = world.folder();
    const script = [write(join(cwd, "a.txt")), { text: "end" }];
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag(script),
      cwd,
      permissionRequestTimeoutMs: 1000,
    });
    const { events, result } = await server.call("claude_code_check", {
      action: "poll",
      sessionId,
      until: "end",
      waitMs: 40_000,
      responseMode: "delta_compact",
    });
    expect(result?.result).toBe("end");
    const at = (type: string) => Date.parse(events.find((event) => event.type === type)?.timestamp ?? "");
    const waited = at("permission_result") - at("permission_request");
    // The default is 60 s from the first showing.
    expect(waited).toBeGreaterThanOrEqual(950);
    expect(waited).toBeLessThan(20_000);
    expect(events.find(({ type }) => type === "permission_result")?.data).toMatchObject({
      decision: "deny",
      by: "timeout",
    });
  });

  it("asks nobody: `permissionPrompts`", async () => {
    const options = { advanced: { permissionPrompts: "none" } };
    const { sessionId, fate } = await fates(server, options);
    expect(fate).toBe("Write denied, Bash denied");
    const { events } = await told(server, sessionId);
    expect(events.map(({ type }) => type)).not.toContain("permission_request");
    expect(JSON.stringify(events)).toContain("this session has no approval surface");
  });

  it("says how to plan: `planModeInstructions`", async () => {
    const { sessionId } = await play(server, [{ text: "ok" }], {
      cwd: world.folder(),
      permissionMode: "plan",
      advanced: { planModeInstructions: "First draw a map of the harbour." },
    });
    expect(requestsOf(world, sessionId)[0]?.told).toContain("First draw a map of the harbour.");
  });
});
