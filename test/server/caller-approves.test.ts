import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer, Connection } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { runScript, readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

/** Tests `--caller-approves` in every tool: options beyond the bound are left out, with a warning. */

const ALL = ["--toolsets", "all", "--allow-disk-resume"];

const world = useWorld({ agent: "stand-in" });
let none: Server;
/** Server whose `--query` allows more than `--caller-approves`. */
let edits: Server;
/** Server with a separate store. The operator may approve everything, `ann` nothing. */
let http: HttpServer;
let operator: Connection;
const users = namedUsers({ ann: { scopes: ["read", "run"] } });
beforeAll(async () => {
  none = await world.server({ args: [...ALL, "--caller-approves", "none"] });
  const queries = ["--allow-bypass", "--query", '{"allowedTools":["Bash"]}'];
  edits = await world.server({ args: [...ALL, "--caller-approves", "edits", ...queries], env: { IS_SANDBOX: "1" } });
  http = await world.http({ args: [...users.args, ...ALL, "--store", "memory:"] });
  operator = await http.connect();
});

const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] });
const program = (file: string) => ({
  tools: [{ name: "Bash", input: { command: `node -e 'fs.writeFileSync("${file}", "x")'` } }],
});
const warned = ({ warnings }: Record<string, unknown>) => (Array.isArray(warnings) ? warnings.join("\n") : "");

/** Returns a script that writes a file and runs a command. Without a bound, the options in these tests would allow both. */
function writeAndCommand() {
  const cwd = world.folder();
  const files = { Write: join(cwd, "written.txt"), Bash: join(cwd, "ran.txt") };
  return { cwd, files, script: [write(files.Write), program(files.Bash), { text: "end" }] };
}

/**
 * Denies each open request. Returns the tools of all requests so far, including requests that the server denied for lack of an
 * approver.
 */
async function denyRequests(on: Pick<Connection, "call">, sessionId: string): Promise<string[]> {
  const wait = { action: "poll", sessionId, waitMs: 40_000 };
  let answer = await on.call("claude_code_check", wait);
  while (answer.actions[0]) {
    const [{ requestId }] = answer.actions as [Answer["actions"][number]];
    const denial = { action: "respond_permission", sessionId, requestId, decision: "deny", waitMs: 40_000 };
    answer = await on.call("claude_code_check", denial);
  }
  const { events } = await readWholeLog(on, sessionId);
  return events.flatMap(({ data, type }) => (type === "permission_request" ? [String(data["toolName"])] : []));
}

describe("options of a start, under `callerApproves` of `claude_code` or --caller-approves", () => {
  const given = { permissionMode: "acceptEdits", allowedTools: ["Bash"] };
  const both = ["permissionMode acceptEdits", "allowedTools Bash"];
  it.each([
    ["none", () => none, {}, both],
    ["edits", () => edits, {}, both.slice(1)],
    ["edits, and callerApproves reads", () => edits, { callerApproves: "reads" }, both],
    ["edits, and callerApproves all", () => edits, { callerApproves: "all" }, both.slice(1)],
  ] as const)(
    "options of a start beyond the caller's bound are left out, with a warning for each: %s",
    async (_, on, advanced, leftOut) => {
      const asked = leftOut === both ? ["Write", "Bash"] : ["Bash"];
      const { cwd, files, script } = writeAndCommand();
      const start = { prompt: scriptTag([...script]), cwd, ...given, advanced, waitMs: 40_000 };
      const begun = await on().call("claude_code", start);
      for (const what of leftOut) expect(warned(begun)).toContain(`${what}: left out`);
      expect(warned(begun).split("\n")).toHaveLength(leftOut.length);
      expect(await denyRequests(on(), begun.sessionId)).toEqual(asked);
      expect(existsSync(files.Write)).toBe(!asked.includes("Write"));
      expect(existsSync(files.Bash)).toBe(false);
    },
  );

  it("a subagent's permissionMode beyond --caller-approves is left out with a warning", async () => {
    const scout = { description: "d", prompt: "p", permissionMode: "acceptEdits" };
    const begun = await none.call("claude_code", {
      prompt: scriptTag([{ text: "end" }]),
      cwd: world.folder(),
      advanced: { agents: { scout } },
      waitMs: 40_000,
    });
    expect(warned(begun)).toContain("agents.scout.permissionMode acceptEdits: left out");
  });
});

describe("--caller-approves in other tools that start a session", () => {
  it("claude_code_query leaves out options and a default mode beyond --caller-approves", async () => {
    const { cwd, files, script } = writeAndCommand();
    const prompt = scriptTag([...script]);
    const { data: open } = await stream(none, "claude_code_query", {
      prompt,
      cwd,
      permissionMode: "acceptEdits",
      allowedTools: ["Bash"],
    });
    expect(open).toMatchObject({ permissionMode: "default" });
    expect(warned(open)).toContain("permissionMode acceptEdits: left out");
    expect(warned(open)).toContain("allowedTools Bash: left out");
    const { sessionId } = open;
    expect(await denyRequests(none, String(sessionId))).toEqual(["Write", "Bash"]);

    const { data: denied } = await stream(edits, "claude_code_query", { prompt, cwd });
    expect(denied).toMatchObject({ permissionMode: "dontAsk", note: expect.stringContaining("(edits)") });
    // `--query` allows Bash, without an approval of the caller.
    expect([existsSync(files.Write), existsSync(files.Bash)]).toEqual([false, true]);
  });

  it("claude_session_create leaves out a mode beyond --caller-approves; claude_direct_query keeps a mode within", async () => {
    const { cwd, files, script } = writeAndCommand();
    const options = { cwd, permissionMode: "acceptEdits" };
    const { data: created } = await stream(none, "claude_session_create", options);
    expect(warned(created)).toContain("permissionMode acceptEdits: left out");
    const { data: direct } = await stream(edits, "claude_direct_query", {
      ...options,
      prompt: scriptTag([write(files.Write), script[2]!]),
    });
    expect(direct["warnings"]).toBeUndefined();
    expect(existsSync(files.Write)).toBe(true);
  });

  it("a fork by claude_code_reply does not inherit a mode beyond --caller-approves", async () => {
    const options = { cwd: world.folder(), permissionMode: "acceptEdits" };
    const begin = { prompt: scriptTag([{ text: "end" }]), ...options, waitMs: 40_000 };
    const { sessionId } = await edits.call("claude_code", begin);
    const fork = { sessionId, prompt: scriptTag([{ text: "end" }]), forkSession: true, waitMs: 40_000 };
    expect(warned(await none.call("claude_code_reply", fork))).toContain("permissionMode acceptEdits: left out");
    expect((await edits.call("claude_code_reply", fork))["warnings"]).toBeUndefined();
  });

  it("claude_code_reply leaves out options of diskResumeConfig beyond --caller-approves", async () => {
    const cwd = world.folder();
    const first = await operator.call("claude_code", {
      prompt: scriptTag([{ text: "end" }]),
      cwd,
      permissionMode: "acceptEdits",
      waitMs: 40_000,
    });
    const { sessionId } = first;
    expect(first["warnings"]).toBeUndefined();
    await operator.call("claude_code_session", { action: "close", sessionId });
    await expect.poll(() => world.processes().some(({ command }) => command.includes(sessionId))).toBe(false);
    const { files, script } = writeAndCommand();
    const prompt = scriptTag([write(files.Write), script[2]!]);
    const diskResumeConfig = { cwd, permissionMode: "acceptEdits", allowedTools: ["Write"] };
    const resumed = await none.call("claude_code_reply", { sessionId, prompt, diskResumeConfig, waitMs: 40_000 });
    expect(warned(resumed)).toContain("permissionMode acceptEdits: left out");
    expect(await denyRequests(none, sessionId)).toEqual(["Write"]);
  });
});

describe("--caller-approves at changes of a session", () => {
  it("set_permission_mode and claude_chat_mode refuse a mode beyond --caller-approves", async () => {
    const { sessionId } = await edits.call("claude_code", {
      prompt: scriptTag([{ text: "end" }]),
      cwd: world.folder(),
      waitMs: 40_000,
    });
    const change = { action: "set_permission_mode", sessionId };
    const refused = await edits.refusal("claude_code_session", { ...change, permissionMode: "auto" });
    expect(refused).toMatchObject({ code: "PERMISSION_DENIED", text: expect.stringContaining("approve here (edits)") });
    await edits.call("claude_code_session", { ...change, permissionMode: "acceptEdits" });
    const chat = await none.refusal("claude_chat_mode", { sessionId, permissionMode: "acceptEdits" });
    expect(chat).toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("rules of updatedPermissions in an answer are left out beyond --caller-approves, with a warning", async () => {
    const { cwd, files } = writeAndCommand();
    const second = join(cwd, "second.txt");
    const open = await runScript(edits, [write(files.Write), program(files.Bash), write(second), { text: "end" }], {
      cwd,
    });
    const rules = [{ toolName: "Bash" }];
    const answer = await edits.call("claude_code_check", {
      action: "respond_permission",
      sessionId: open.sessionId,
      requestId: open.actions[0]?.requestId,
      decision: "allow",
      permissionOptions: {
        updatedPermissions: [
          { type: "setMode", mode: "acceptEdits" },
          { type: "addRules", behavior: "allow", rules },
        ],
      },
      waitMs: 40_000,
    });
    expect(warned(answer)).toContain("updatedPermissions addRules allow Bash: left out");
    expect(warned(answer)).not.toContain("setMode");
    expect(await denyRequests(edits, open.sessionId)).toEqual(["Write", "Bash"]);
    expect([existsSync(files.Bash), existsSync(second)]).toEqual([false, true]);
  });
});

describe("an answer with another input", () => {
  it("a caller may change the input of a request only to an input that the caller may approve", async () => {
    const { cwd, files } = writeAndCommand();
    const { actions, sessionId } = await runScript(edits, [write(files.Write), { text: "end" }], { cwd });
    expect(actions).toMatchObject([{ risk: { level: "edits" } }]);
    const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
    const elsewhere = join(world.folder(), "elsewhere.txt");
    const changed = { ...answer, permissionOptions: { updatedInput: { file_path: elsewhere, content: "x" } } };
    expect(await edits.refusal("claude_code_check", changed)).toMatchObject({
      code: "PERMISSION_DENIED",
      text: expect.stringContaining("Write with it (all) is more than a caller may approve here (edits)"),
    });
    const within = { file_path: join(cwd, "within.txt"), content: "x" };
    await edits.call("claude_code_check", { ...answer, permissionOptions: { updatedInput: within }, waitMs: 40_000 });
    expect([elsewhere, files.Write, within.file_path].map((file) => existsSync(file))).toEqual([false, false, true]);
  });
});

describe("a caller without the scope approve", () => {
  it("a caller without the scope approve can approve nothing: not by options, an answer or a mode", async () => {
    const ann = await http.connect("modern", users.tokens.ann);
    const { cwd, files, script } = writeAndCommand();
    const begun = await ann.call("claude_code", {
      prompt: scriptTag([...script]),
      cwd,
      permissionMode: "acceptEdits",
      allowedTools: ["Bash"],
      permissionRequestTimeoutMs: 3_000,
      waitMs: 40_000,
    });
    const { sessionId } = begun;
    expect(warned(begun)).toContain("this caller may approve (nothing)");
    const [action] = (await ann.news(sessionId)).actions;
    expect(action).toMatchObject({ toolName: "Write" });
    const answer = { action: "respond_permission", sessionId, requestId: action?.requestId, decision: "allow" };
    expect(await ann.refusal("claude_code_check", answer)).toMatchObject({ code: "PERMISSION_DENIED" });
    const mode = { action: "set_permission_mode", sessionId, permissionMode: "acceptEdits" };
    expect(await ann.refusal("claude_code_session", mode)).toMatchObject({ code: "PERMISSION_DENIED" });
    const revoke = await ann.refusal("claude_code_session", { action: "revoke", sessionId });
    expect(revoke).toMatchObject({ code: "PERMISSION_DENIED" });
    await ann.call("claude_code_check", { action: "poll", sessionId, until: "end", waitMs: 40_000 });
    expect([existsSync(files.Write), existsSync(files.Bash)]).toEqual([false, false]);
  });
});
