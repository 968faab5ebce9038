import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { requestsOf } from "../support/one-turn.ts";
import type { Server } from "../support/stdio-server.ts";
import { stream } from "../support/streaming.ts";
import { useWorld } from "../support/world.ts";

const world = useWorld({ agent: "stand-in" });

const QUERY = "claude_code_query";
const ok = scriptTag([{ text: "ok" }]);

function writing(file: string): string {
  return scriptTag([{ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] }, { text: "Done." }]);
}

async function querying(args: string[] = [], env: Record<string, string> = {}) {
  return world.server({ args: ["--toolsets", "query", ...args], env });
}

let closed: Server;
/** Lists claude_code_check too; its answers are short. */
let both: Server;
beforeAll(async () => {
  closed = await querying();
  both = await world.server({ args: ["--toolsets", "agent,query", "--query", '{"maxBytes":20000}'] });
});

async function describedOf(server: Server): Promise<string> {
  const { tools } = await server.client.listTools();
  return tools.find(({ name }) => name === QUERY)?.description ?? "";
}

describe("a tool use of a query", () => {
  it("runs by `permissionMode` of `claude_code_query` only if it is allowed beforehand or the operator's gate is open, and the answer says so", async () => {
    const cwd = world.folder();
    const denied = await stream(closed, QUERY, { prompt: writing(join(cwd, "a.txt")), cwd });
    expect(denied.data).toMatchObject({ permissionMode: "dontAsk", result: { success: true, summary: "Done." } });
    expect(denied.data["note"]).toContain("--allow-bypass");
    expect(await describedOf(closed)).toContain(
      "Defaults: permissionMode dontAsk (tool uses that no rule allows are denied),",
    );
    expect(existsSync(join(cwd, "a.txt"))).toBe(false);
    expect(await closed.refusal(QUERY, { prompt: ok, cwd, permissionMode: "bypassPermissions" })).toMatchObject({
      code: "PERMISSION_DENIED",
    });

    const open = await querying(["--allow-bypass"], { IS_SANDBOX: "1" });
    const done = await stream(open, QUERY, { prompt: writing(join(cwd, "b.txt")), cwd });
    expect(done.data).toMatchObject({ permissionMode: "bypassPermissions", result: { success: true } });
    expect(done.data).not.toHaveProperty("note");
    expect(existsSync(join(cwd, "b.txt"))).toBe(true);
    expect(await describedOf(open)).toContain("Defaults: permissionMode bypassPermissions,");
  });

  it("is denied at once where no approver can answer, with a reason that Claude Code can act upon", async () => {
    const cwd = world.folder();
    const args = { prompt: writing(join(cwd, "a.txt")), cwd, permissionMode: "default" };
    const { data } = await stream(closed, QUERY, args);
    expect(data).toMatchObject({ status: "done", result: { success: true, summary: "Done." } });
    expect(JSON.stringify(data["messages"])).toContain("No approver can answer a request here");
    expect(existsSync(join(cwd, "a.txt"))).toBe(false);
  });

  it("is asked of a caller who has claude_code_check: the query returns, and nothing is lost", async () => {
    const cwd = world.folder();
    const args = { prompt: writing(join(cwd, "a.txt")), cwd, permissionMode: "default" };
    const { data } = await stream(both, QUERY, args);
    expect(data).toMatchObject({
      status: "waiting_permission",
      result: { success: false, error: "waiting_permission" },
    });
    expect(data["next"]).toContain("claude_code_check");
    const [action] = data["actions"] as { requestId: string; toolName: string }[];
    expect(action?.toolName).toBe("Write");
    const rest = await both.call("claude_code_check", {
      action: "respond_permission",
      sessionId: data["sessionId"],
      cursor: data["nextCursor"],
      requestId: action?.requestId,
      decision: "allow",
      until: "end",
    });
    expect(rest).toMatchObject({ status: "idle", result: { result: "Done.", isError: false } });
    expect(existsSync(join(cwd, "a.txt"))).toBe(true);
  });
});

describe("the operator's settings of the query toolset", () => {
  it("are defaults that `claude_code_query` overrides, and states in its description: `cwd`, `model`, `maxTurns`, `maxMessages`, `includeSystemMessages`, `disallowedTools`, `appendSystemPrompt`", async () => {
    const [first, second] = [world.folder(), world.folder()];
    writeFileSync(join(first, "note.txt"), "The tide is low.");
    const server = await querying([], {
      CLAUDE_CODE_DEFAULT_CWD: first,
      CLAUDE_CODE_DEFAULT_MODEL: "claude-haiku-5-5",
      CLAUDE_CODE_DEFAULT_PERMISSION_MODE: "default",
      CLAUDE_CODE_MAX_TURNS: "2",
      CLAUDE_CODE_MAX_MESSAGES: "3",
      CLAUDE_CODE_INCLUDE_SYSTEM_MESSAGES: "false",
      CLAUDE_CODE_ALLOWED_TOOLS: "Read,Bash(pwd)",
    });
    const { tools } = await server.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([QUERY]);
    const said = ["default", "maxMessages 3", "claude-haiku-5-5", first, "maxTurns 2", "Read, Bash(pwd)", "300000 ms"];
    for (const word of said) expect(tools[0]?.description).toContain(word);

    const pwd = { tools: [{ name: "Bash", input: { command: "pwd" } }] };
    const byDefault = await stream(server, QUERY, { prompt: scriptTag([pwd, pwd, { text: "never" }]) });
    expect(byDefault.data).toMatchObject({ status: "failed", result: { success: false }, permissionMode: "default" });
    expect((byDefault.data["result"] as { error: string }).error).toContain("max_turns");
    const messages = byDefault.data["messages"] as { type: string }[];
    expect(messages).toHaveLength(3);
    expect(byDefault.data).toMatchObject({ omitted: (byDefault.data["totalMessages"] as number) - 3 });
    expect(JSON.stringify(messages)).toContain(first);
    expect(requestsOf(world, String(byDefault.data["sessionId"]))[0]?.model).toBe("claude-haiku-5-5");
    expect(byDefault.logs.some(({ data }) => String(data).includes('"type":"system"'))).toBe(false);
    expect(byDefault.logs.at(-1)).toMatchObject({ level: "error" });
    const uri = String(byDefault.data["resource"]);
    const { contents } = await server.client.readResource({ uri });
    expect(JSON.stringify(contents)).toContain("pwd");

    const chosen = await stream(server, QUERY, {
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
    const isLive = () => world.processes().some(({ command }) => command.includes(String(chosen.data["sessionId"])));
    await expect.poll(isLive, { timeout: 10_000 }).toBe(false);
  });

  it("keep an answer within its bytes: messages are cut, and say so, the oldest are left out", async () => {
    const long = Array.from({ length: 8 }, (_, index) => ({
      text: `${String(index)} ${"x".repeat(index === 7 ? 9_000 : 2_000)}`,
      tools: [{ name: "Read", input: { file_path: `/nowhere/${String(index)}` } }],
    }));
    const { data, logs } = await stream(both, QUERY, {
      prompt: scriptTag([...long, { text: "End." }]),
      cwd: world.folder(),
    });
    expect(Buffer.byteLength(JSON.stringify(data))).toBeLessThanOrEqual(20_000);
    expect(data).toMatchObject({ status: "done", result: { summary: "End." } });
    expect(data["omitted"]).toBeGreaterThan(0);
    const messages = data["messages"] as { truncated?: boolean }[];
    expect(messages.filter(({ truncated }) => truncated)).toHaveLength(1);
    expect(messages.at(-1)).toMatchObject({ type: "result" });
    expect(logs).toHaveLength(data["totalMessages"] as number);
  });

  it("remove the tool, or end a query that takes too long with its partial result", async () => {
    const off = await world.server({ args: ["--toolsets", "agent,query"], env: { CLAUDE_CODE_ENABLE: "false" } });
    expect((await off.client.listTools()).tools.map(({ name }) => name)).not.toContain(QUERY);

    const short = await world.server({
      args: ["--toolsets", "agent,query"],
      env: { CLAUDE_CODE_MAX_EXECUTION_TIME: "2500" },
    });
    const prompt = scriptTag([
      { text: "I begin.", tools: [{ name: "Bash", input: { command: "node -e 'setInterval(() => {}, 1000)'" } }] },
    ]);
    const late = await stream(short, QUERY, { prompt, cwd: world.folder(), allowedTools: ["Bash"] });
    expect(late.data).toMatchObject({ status: "timeout", timedOut: true, result: { success: false } });
    expect(JSON.stringify(late.data["messages"])).toContain("I begin.");
    const { sessionId } = late.data;
    await expect.poll(() => short.stderr()).toMatch(/"level":"info".*"outcome":"timeout".*"msg":"query ended"/);
    const again = await short.call("claude_code_reply", { sessionId, prompt: ok, waitMs: 40_000 });
    expect(again).toMatchObject({ status: "idle", result: { result: "ok" } });
  });
});
