import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { requestsOf } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { acceptance, listed, REAL } from "./stage.ts";

/** Makes a blocking call of `claude_code_query`, which reports every message as a notification and in the answer. */

const QUERY = "claude_code_query";
const TOOLSETS = ["--toolsets", "query"];
const ok = scriptTag([{ text: "ok" }]);
const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const write = (file: string) => ({ tools: [{ name: "Write", input: { file_path: file, content: "hello" } }] });

interface Told {
  type: string;
  sessionId: string;
  sequence: number;
  timestamp: string;
  message: { type: string };
}

acceptance("a query", ({ server: serve, world }) => {
  let server: Server;
  beforeAll(async () => {
    server = await serve({ args: TOOLSETS });
  });

  it("only `claude_code_query` is listed; it requires the prompt, and its description names the defaults", async () => {
    const { description, names, properties, required } = await listed(server, QUERY);
    expect(names).toEqual([QUERY]);
    expect(required).toEqual(["prompt"]);
    const core = ["cwd", "maxTurns", "model", "appendSystemPrompt", "permissionMode"];
    const rest = ["maxMessages", "includeSystemMessages", "allowedTools", "disallowedTools"];
    expect(properties).toEqual(expect.arrayContaining(["prompt", ...core, ...rest]));
    for (const told of ["permissionMode dontAsk", "maxMessages 100", "300000 ms"]) expect(description).toContain(told);
  });

  it("`claude_code_query` runs `prompt` in `cwd` with `allowedTools`, reports each message at once, and answers with all of them", async () => {
    const cwd = world.folder();
    const file = join(cwd, "a.txt");
    const prompt = scriptTag([{ text: "I write.", ...write(file) }, { text: "Written." }]);
    const answer = await stream(server, QUERY, { prompt, cwd, allowedTools: ["Write"] });
    expect(answer.data).toMatchObject({ status: "done", result: { success: true, summary: "Written." }, omitted: 0 });
    expect(answer.data).toMatchObject({
      executionTime: expect.any(Number),
      usage: { output_tokens: expect.any(Number) },
    });
    expect(readFileSync(file, "utf8")).toBe("hello");
    const messages = answer.data["messages"] as { type: string }[];
    expect(answer.data["totalMessages"]).toBe(messages.length);
    expect(messages[0]).toMatchObject({ type: "system", subtype: "init" });
    expect(messages.at(-1)).toMatchObject({ type: "result", result: "Written." });
    expect(answer.blocks).toEqual([JSON.stringify(answer.data)]);

    const told = answer.logs.map(({ data }) => JSON.parse(String(data)) as Told);
    expect(told.map(({ message }) => message)).toEqual(messages);
    expect(told.map(({ sequence }) => sequence)).toEqual(messages.map((_, index) => index + 1));
    expect(told.every(({ type }) => type === "claude_code_message")).toBe(true);
    expect(new Set(told.map(({ sessionId }) => sessionId))).toEqual(new Set([answer.data["sessionId"]]));
    expect(told.every(({ timestamp }) => new Date(timestamp).toISOString() === timestamp)).toBe(true);
    expect(answer.logs.every(({ level }) => level === "info")).toBe(true);
  });

  it("`permissionMode` of `claude_code_query` runs only allowed tools, unless the operator's gate is open; the answer says so", async () => {
    const cwd = world.folder();
    const [closedTo, openTo] = [join(cwd, "a.txt"), join(cwd, "b.txt")];
    const denied = await stream(server, QUERY, { prompt: scriptTag([write(closedTo), { text: "Done." }]), cwd });
    expect(denied.data).toMatchObject({ permissionMode: "dontAsk", result: { success: true, summary: "Done." } });
    expect(denied.data["note"]).toContain("--allow-bypass");
    expect(existsSync(closedTo)).toBe(false);
    const bypass = { prompt: ok, cwd, permissionMode: "bypassPermissions" };
    expect(await server.refusal(QUERY, bypass)).toMatchObject({ code: "PERMISSION_DENIED" });

    const open = await serve({ args: [...TOOLSETS, "--allow-bypass"], env: { IS_SANDBOX: "1" } });
    const done = await stream(open, QUERY, { prompt: scriptTag([write(openTo), { text: "Done." }]), cwd });
    expect(done.data).toMatchObject({ permissionMode: "bypassPermissions", result: { success: true } });
    expect(done.data).not.toHaveProperty("note");
    expect(existsSync(openTo)).toBe(true);
    expect((await listed(open, QUERY)).description).toContain("Defaults: permissionMode bypassPermissions,");
  });

  it("arguments of `claude_code_query` override the operator's variables: `cwd`, `model`, `maxTurns`, `maxMessages`, `includeSystemMessages`, `disallowedTools`, `appendSystemPrompt`", async () => {
    const [first, second] = [world.folder(), world.folder()];
    const env = {
      CLAUDE_CODE_ENABLE: "true",
      CLAUDE_CODE_DEFAULT_CWD: first,
      CLAUDE_CODE_DEFAULT_MODEL: "claude-haiku-5-5",
      CLAUDE_CODE_DEFAULT_PERMISSION_MODE: "default",
      CLAUDE_CODE_MAX_TURNS: "2",
      CLAUDE_CODE_MAX_MESSAGES: "3",
      CLAUDE_CODE_INCLUDE_SYSTEM_MESSAGES: "false",
      CLAUDE_CODE_ALLOWED_TOOLS: "Read,Bash(pwd)",
    };
    const operated = await serve({ args: TOOLSETS, env });
    const { description } = await listed(operated, QUERY);
    const said = ["default", "maxMessages 3", "claude-haiku-5-5", first, "maxTurns 2", "Read, Bash(pwd)", "300000 ms"];
    for (const word of said) expect(description).toContain(word);

    const pwd = bash("pwd");
    const byDefault = await stream(operated, QUERY, { prompt: scriptTag([pwd, pwd, { text: "never" }]) });
    expect(byDefault.data).toMatchObject({ status: "failed", result: { success: false }, permissionMode: "default" });
    expect((byDefault.data["result"] as { error: string }).error).toContain("max_turns");
    const messages = byDefault.data["messages"] as { type: string }[];
    expect(messages).toHaveLength(3);
    expect(byDefault.data).toMatchObject({ omitted: (byDefault.data["totalMessages"] as number) - 3 });
    expect(JSON.stringify(messages)).toContain(first);
    expect(requestsOf(world, String(byDefault.data["sessionId"]))[0]?.model).toBe("claude-haiku-5-5");
    expect(byDefault.logs.some(({ data }) => String(data).includes('"type":"system"'))).toBe(false);
    expect(byDefault.logs.at(-1)).toMatchObject({ level: "error" });
    const { contents } = await operated.client.readResource({ uri: String(byDefault.data["resource"]) });
    expect(JSON.stringify(contents)).toContain("pwd");

    const chosen = await stream(operated, QUERY, {
      prompt: scriptTag([pwd, pwd, { text: "Done." }]),
      cwd: second,
      model: "claude-sonnet-5-5",
      maxTurns: 9,
      maxMessages: 50,
      includeSystemMessages: true,
      disallowedTools: ["WebSearch"],
      appendSystemPrompt: "Mind the harbour.",
    });
    expect(chosen.data).toMatchObject({ status: "done", omitted: 0, result: { success: true, summary: "Done." } });
    expect(JSON.stringify(chosen.data["messages"])).toContain('"subtype":"init"');
    const [request] = requestsOf(world, String(chosen.data["sessionId"]));
    expect(request?.model).toBe("claude-sonnet-5-5");
    expect(request?.system).toContain("Mind the harbour.");
    expect(request?.tools).not.toContain("WebSearch");
    expect(JSON.stringify(chosen.data["messages"])).toContain(second);
    // The process ends with the query.
    const isLive = () => world.processes().some(({ command }) => command.includes(String(chosen.data["sessionId"])));
    await expect.poll(isLive, { timeout: 10_000 }).toBe(false);
  });

  it("`claude_code_query` refuses invalid arguments at once; an error of the turn is a notification and in the answer, with keys masked", async () => {
    const refused = await server.refusal(QUERY, { prompt: ok, cwd: "/nowhere/at/all" });
    expect(refused).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining("cwd") });
    const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    const prompt = scriptTag([
      { text: "I begin.", ...bash("pwd") },
      { error: { status: 401, message: `bad key ${key}`, times: 99 } },
    ]);
    const { data, logs } = await stream(server, QUERY, { prompt, cwd: world.folder(), allowedTools: ["Bash"] });
    expect(data).toMatchObject({
      status: "failed",
      result: { success: false, error: expect.stringContaining("bad key") },
    });
    expect(JSON.stringify(data["messages"])).toContain("I begin.");
    const last = JSON.parse(String(logs.at(-1)?.data)) as object;
    expect(logs.at(-1)?.level).toBe("error");
    expect(last).toMatchObject({ type: "claude_code_error", sessionId: data["sessionId"], sequence: logs.length });
    expect(JSON.stringify([data, logs])).not.toContain(key);
  });

  it("`claude_code_query` ends with the messages so far at the operator's time limit or on cancellation; the session continues", async () => {
    const env = { CLAUDE_CODE_MAX_EXECUTION_TIME: REAL ? "6000" : "1500" };
    const short = await serve({ args: ["--toolsets", "agent,query"], env });
    const script = scriptTag([{ text: "I begin.", ...bash("node -e 'setInterval(() => {}, 1000)'") }]);
    const args = { prompt: script, cwd: world.folder(), allowedTools: ["Bash"] };
    const late = await stream(short, QUERY, args);
    expect(late.data).toMatchObject({ status: "timeout", timedOut: true, result: { success: false } });
    expect(JSON.stringify(late.data["messages"])).toContain("I begin.");
    const again = { sessionId: late.data["sessionId"], prompt: ok, waitMs: 40_000 };
    expect(await short.call("claude_code_reply", again)).toMatchObject({ status: "idle", result: { result: "ok" } });

    const cancelled = new AbortController();
    let sessionId = "";
    const onLog = ({ data }: { data: unknown }) => {
      const told = JSON.parse(String(data)) as Told;
      if (told.message.type !== "assistant") return;
      ({ sessionId } = told);
      cancelled.abort();
    };
    await expect(stream(short, QUERY, args, { signal: cancelled.signal, onLog })).rejects.toThrow(/abort/i);
    const ended = await short.end(sessionId);
    expect(ended).toMatchObject({ status: "idle", result: { isError: true, errorSubtype: "interrupted" } });
    const shells = () => world.processes().filter(({ command }) => command.startsWith("node -e"));
    await expect.poll(shells, { timeout: 10_000 }).toEqual([]);
  });

  it("`claude_code_query` is not listed if the operator has disabled it", async () => {
    const off = await serve({ args: ["--toolsets", "agent,query"], env: { CLAUDE_CODE_ENABLE: "false" } });
    expect((await listed(off, QUERY)).names).not.toContain(QUERY);
  });
});
