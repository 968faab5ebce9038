import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { HttpConnection, HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Calls that each scope allows, and refusals without the scope, as clients see both. */

const world = useWorld({ agent: "stand-in" });
/** Ada at several servers on the store, with other scopes at each. */
let reading: HttpConnection;
let running: HttpConnection;
let approving: HttpConnection;
beforeAll(async () => {
  const store = join(world.folder(), "store.db");
  const adaWith = async (...scopes: string[]) => {
    const { args, tokens } = namedUsers({ ada: { scopes } });
    const server = await world.http({ args: [...args, "--store", store, "--toolsets", "all"] });
    return server.connect("modern", tokens.ada);
  };
  reading = await adaWith("read");
  running = await adaWith("read", "run");
  approving = await adaWith("read", "approve");
});

/** Starts a session of Ada with an open request to write `file`. `allow` is the answer that permits the write. */
async function askToWrite(ada: HttpConnection) {
  const cwd = world.folder();
  const file = join(cwd, "a.txt");
  const write = { name: "Write", input: { file_path: file, content: "x" } };
  const prompt = scriptTag([{ tools: [write] }, { text: "written" }]);
  const { sessionId } = await ada.call("claude_code", { prompt, cwd });
  const { actions, nextCursor: cursor } = await ada.news(sessionId);
  const allow = {
    action: "respond_permission",
    sessionId,
    requestId: actions[0]?.requestId,
    decision: "allow",
    cursor,
  };
  return { file, sessionId, allow: { ...allow, until: "end", waitMs: 40_000 } };
}

const toolsOf = async ({ client }: HttpConnection) => (await client.listTools()).tools.map(({ name }) => name);

const denied = (what: string, needed: string, had: string) => ({
  code: "PERMISSION_DENIED",
  text: `Error [PERMISSION_DENIED]: ${what} needs the scope ${needed}; this caller has the ${had}. Use a token that has it, or ask the operator of the server for one.`,
});

describe("callers with few scopes", () => {
  it("a caller with the scope read sees sessions, and changes nothing with any other call", async () => {
    const { allow, file, sessionId } = await askToWrite(running);
    expect(await toolsOf(reading)).toEqual(["claude_code_check", "claude_code_session", "claude_code_configure"]);
    const seen = await reading.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(seen).toMatchObject({ status: "waiting_permission", actions: [{ toolName: "Write" }] });

    const had = "scope read";
    const start = { prompt: scriptTag([{ text: "x" }]), cwd: world.folder() };
    expect(await reading.refusal("claude_code", start)).toEqual(denied("claude_code", "run", had));
    const answer = denied("claude_code_check (respond_permission)", "approve", had);
    expect(await reading.refusal("claude_code_check", allow)).toEqual(answer);
    for (const [action, more] of [
      ["interrupt", {}],
      ["cancel", {}],
      ["delete", {}],
      ["rename", { title: "x" }],
      ["set_permission_mode", { permissionMode: "plan" }],
    ] as const) {
      const refused = await reading.refusal("claude_code_session", { action, sessionId, ...more });
      expect(refused).toEqual(denied(`claude_code_session (${action})`, "run", had));
    }
    const again = await reading.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect({ ...again, actions: again.actions.length }).toEqual({ ...seen, actions: 1 });
    expect(existsSync(file)).toBe(false);
    const { sessions } = await reading.call("claude_code_session", { action: "list" });
    expect(sessions).toHaveLength(1);
    // Over HTTP the operator decides who may see `title` and `folder`.
    for (const name of ["title", "folder"]) expect(sessions[0]).not.toHaveProperty(name);
    await running.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a caller with the scope run starts and ends sessions, and decides no requests", async () => {
    const { allow, file, sessionId } = await askToWrite(running);
    const what = "claude_code_check (respond_permission)";
    expect(await running.refusal("claude_code_check", allow)).toEqual(denied(what, "approve", "scopes read, run"));
    const { actions } = await running.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
    expect(actions).toHaveLength(1);
    expect(existsSync(file)).toBe(false);
    await running.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a caller with the scope approve decides in another server's session, and starts, continues and ends nothing", async () => {
    const { allow, file, sessionId } = await askToWrite(running);
    const had = "scopes read, approve";
    const prompt = scriptTag([{ text: "x" }]);
    const reply = await approving.refusal("claude_code_reply", { sessionId, prompt });
    expect(reply).toEqual(denied("claude_code_reply", "run", had));
    const cancel = await approving.refusal("claude_code_session", { action: "cancel", sessionId });
    expect(cancel).toEqual(denied("claude_code_session (cancel)", "run", had));
    const told = await approving.call("claude_code_check", allow);
    expect(told).toMatchObject({ status: "idle", result: { result: "written" } });
    expect(existsSync(file)).toBe(true);
  });
});

describe("privileges reserved for the operator", () => {
  const scopes = ["read", "run", "approve"];
  const { args, tokens } = namedUsers({
    ada: { scopes },
    bob: { scopes, operatorOptions: true },
    eve: { scopes: [...scopes, "admin"] },
  });
  let server: HttpServer;
  beforeAll(async () => {
    server = await world.http({ args: [...args, "--toolsets", "agent,configure"], env: { IS_SANDBOX: "1" } });
  });

  const bypassing = () => ({
    prompt: scriptTag([{ tools: [{ name: "Bash", input: { command: "touch done" } }] }, { text: "unasked" }]),
    cwd: world.folder(),
    permissionMode: "bypassPermissions",
    waitMs: 40_000,
  });

  it("only the operator opens the gate to bypassPermissions, which holds for every user of the server", async () => {
    const [ada, operator] = [await server.connect("modern", tokens.ada), await server.connect("legacy")];
    const enable = { action: "enable_bypass" };
    const needed = denied("claude_code_configure (enable_bypass)", "admin", "scopes read, run, approve");
    expect(await ada.refusal("claude_code_configure", enable)).toEqual(needed);
    expect(await ada.refusal("claude_code", bypassing())).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(await operator.refusal("claude_code", bypassing())).toMatchObject({ code: "PERMISSION_DENIED" });

    await operator.call("claude_code_configure", enable);
    expect(await ada.call("claude_code_configure", { action: "get_config" })).toMatchObject({ allowBypass: true });
    expect((await ada.call("claude_code", bypassing())).result?.result).toBe("unasked");
    const off = { action: "disable_bypass" };
    expect(await ada.refusal("claude_code_configure", off)).toMatchObject({ code: "PERMISSION_DENIED" });
    await operator.call("claude_code_configure", off);
    expect(await ada.refusal("claude_code", bypassing())).toMatchObject({ code: "PERMISSION_DENIED" });
  });

  it("options that reach beyond a folder need operatorOptions or the scope admin", async () => {
    const ada = await server.connect("modern", tokens.ada);
    const told = join(world.folder(), "told");
    const script = [{ tools: [{ name: "Bash", input: { command: `printf "$TIDE" > ${told}-$WHO` } }] }, { text: "ok" }];
    const start = { prompt: scriptTag(script), cwd: world.folder(), allowedTools: ["Bash"], waitMs: 40_000 };
    for (const [name, value] of Object.entries({
      env: { TIDE: "low", WHO: "ada" },
      pathToClaudeCodeExecutable: "/bin/true",
      mcpServers: { own: { command: "true" } },
      sandbox: { enabled: false },
      debug: true,
      debugFile: `${told}.log`,
      betas: ["context-1m-2025-08-07"],
    })) {
      const { code, text } = await ada.refusal("claude_code", { ...start, advanced: { [name]: value } });
      expect([name, code]).toEqual([name, "PERMISSION_DENIED"]);
      expect(text).toContain(`${name}: only the operator may set it`);
    }
    for (const token of [tokens.bob, tokens.eve]) {
      const client = await server.connect("modern", token);
      const advanced = { env: { TIDE: "low", WHO: token.slice(7, 10) } };
      const { status } = await client.call("claude_code", { ...start, advanced });
      expect(status).toBe("idle");
    }
    expect(["ada", "bob", "eve"].map((who) => existsSync(`${told}-${who}`))).toEqual([false, true, true]);
  });
});
