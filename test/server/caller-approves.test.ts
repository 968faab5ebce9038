import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer, Connection } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { play, told } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

/** How much the calling model may approve: by every route, a request beyond that goes to another approver, and the caller is told. */

const ALL = ["--toolsets", "all", "--allow-disk-resume"];

const world = useWorld({ agent: "stand-in" });
let none: Server;
/** Its operator allows queries more than its callers may approve. */
let edits: Server;
/** Knows nothing of the sessions of the others. Its operator may approve everything, and ann nothing. */
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

/** A file write and a command, for which the caller's options would have made a request unnecessary. */
function deeds() {
  const cwd = world.folder();
  const files = { Write: join(cwd, "written.txt"), Bash: join(cwd, "ran.txt") };
  return { cwd, files, script: [write(files.Write), program(files.Bash), { text: "end" }] };
}

/** Requests, one after the other: open ones are denied here, and those that no approver may allow by the server. */
async function askedOf(on: Pick<Connection, "call">, sessionId: string): Promise<string[]> {
  const wait = { action: "poll", sessionId, waitMs: 40_000 };
  let answer = await on.call("claude_code_check", wait);
  while (answer.actions[0]) {
    const [{ requestId }] = answer.actions as [Answer["actions"][number]];
    const denial = { action: "respond_permission", sessionId, requestId, decision: "deny", waitMs: 40_000 };
    answer = await on.call("claude_code_check", denial);
  }
  const { events } = await told(on, sessionId);
  return events.flatMap(({ data, type }) => (type === "permission_request" ? [String(data["toolName"])] : []));
}

describe("options of a start, with `callerApproves` of `claude_code` or --caller-approves", () => {
  const given = { permissionMode: "acceptEdits", allowedTools: ["Bash"] };
  const both = ["permissionMode acceptEdits", "allowedTools Bash"];
  it.each([
    ["none", () => none, {}, both],
    ["edits", () => edits, {}, both.slice(1)],
    ["edits, and reads of the session's own", () => edits, { callerApproves: "reads" }, both],
    ["edits, and all of the session's own", () => edits, { callerApproves: "all" }, both.slice(1)],
  ] as const)("%s", async (_, on, advanced, leftOut) => {
    const asked = leftOut === both ? ["Write", "Bash"] : ["Bash"];
    const { cwd, files, script } = deeds();
    const start = { prompt: scriptTag([...script]), cwd, ...given, advanced, waitMs: 40_000 };
    const begun = await on().call("claude_code", start);
    for (const what of leftOut) expect(warned(begun)).toContain(`${what}: left out`);
    expect(warned(begun).split("\n")).toHaveLength(leftOut.length);
    expect(await askedOf(on(), begun.sessionId)).toEqual(asked);
    expect(existsSync(files.Write)).toBe(!asked.includes("Write"));
    expect(existsSync(files.Bash)).toBe(false);
  });

  it("of subagents: their permissionMode", async () => {
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

describe("--caller-approves bounds other ways to begin", () => {
  it("claude_code_query: its options, and a default beyond it", async () => {
    const { cwd, files, script } = deeds();
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
    expect(await askedOf(none, String(sessionId))).toEqual(["Write", "Bash"]);

    const { data: denied } = await stream(edits, "claude_code_query", { prompt, cwd });
    expect(denied).toMatchObject({ permissionMode: "dontAsk", note: expect.stringContaining("(edits)") });
    // What the operator allows is not the caller's approval.
    expect([existsSync(files.Write), existsSync(files.Bash)]).toEqual([false, true]);
  });

  it("claude_session_create and claude_direct_query", async () => {
    const { cwd, files, script } = deeds();
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

  it("claude_code_reply: a fork of a session that was allowed more", async () => {
    const options = { cwd: world.folder(), permissionMode: "acceptEdits" };
    const begin = { prompt: scriptTag([{ text: "end" }]), ...options, waitMs: 40_000 };
    const { sessionId } = await edits.call("claude_code", begin);
    const fork = { sessionId, prompt: scriptTag([{ text: "end" }]), forkSession: true, waitMs: 40_000 };
    expect(warned(await none.call("claude_code_reply", fork))).toContain("permissionMode acceptEdits: left out");
    expect((await edits.call("claude_code_reply", fork))["warnings"]).toBeUndefined();
  });

  it("claude_code_reply: diskResumeConfig", async () => {
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
    const { files, script } = deeds();
    const prompt = scriptTag([write(files.Write), script[2]!]);
    const diskResumeConfig = { cwd, permissionMode: "acceptEdits", allowedTools: ["Write"] };
    const resumed = await none.call("claude_code_reply", { sessionId, prompt, diskResumeConfig, waitMs: 40_000 });
    expect(warned(resumed)).toContain("permissionMode acceptEdits: left out");
    expect(await askedOf(none, sessionId)).toEqual(["Write"]);
  });
});

describe("--caller-approves bounds changes of a session", () => {
  it("set_permission_mode and claude_chat_mode are refused a mode beyond it", async () => {
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

  it("updatedPermissions of an answer lose what is beyond it, and the answer says so", async () => {
    const { cwd, files } = deeds();
    const second = join(cwd, "second.txt");
    const open = await play(edits, [write(files.Write), program(files.Bash), write(second), { text: "end" }], { cwd });
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
    expect(await askedOf(edits, open.sessionId)).toEqual(["Write", "Bash"]);
    expect([existsSync(files.Bash), existsSync(second)]).toEqual([false, true]);
  });
});

describe("another input", () => {
  it("is another request: a caller allows with it only what that caller may approve", async () => {
    const { cwd, files } = deeds();
    const { actions, sessionId } = await play(edits, [write(files.Write), { text: "end" }], { cwd });
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
  it("approves nothing by its options, an answer or a mode", async () => {
    const ann = await http.connect("modern", users.tokens.ann);
    const { cwd, files, script } = deeds();
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
