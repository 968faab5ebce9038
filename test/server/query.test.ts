import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });

interface Told {
  sessionId: string;
  sequence: number;
  message: { type: string };
}

const forever = { name: "Bash", input: { command: "node -e 'setInterval(() => {}, 1000)'" } };
const QUERY = "claude_code_query";

function writing(file: string): string {
  return scriptTag([{ tools: [{ name: "Write", input: { file_path: file, content: "x" } }] }, { text: "Done." }]);
}

describe("a query whose caller has claude_code_check", () => {
  let server: Server;
  beforeAll(async () => {
    server = await world.server({ args: ["--toolsets", "agent,query", "--query", '{"maxBytes":20000}'] });
  });

  it("a query returns when a tool use needs approval, and nothing is lost", async () => {
    const cwd = world.folder();
    const args = { prompt: writing(join(cwd, "a.txt")), cwd, permissionMode: "default" };
    const { data } = await stream(server, QUERY, args);
    expect(data).toMatchObject({
      status: "waiting_permission",
      result: { success: false, error: "waiting_permission" },
    });
    expect(data["next"]).toContain("claude_code_check");
    const [action] = data["actions"] as { requestId: string; toolName: string }[];
    expect(action?.toolName).toBe("Write");
    const rest = await server.call("claude_code_check", {
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

  it("an answer of a query keeps the operator's limit of 20,000 bytes by cutting messages and omitting the oldest", async () => {
    const long = Array.from({ length: 8 }, (_, index) => ({
      text: `${String(index)} ${"x".repeat(index === 7 ? 9_000 : 2_000)}`,
      tools: [{ name: "Read", input: { file_path: `/nowhere/${String(index)}` } }],
    }));
    const { data, logs } = await stream(server, QUERY, {
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
});

describe("a query that is ended early", () => {
  let server: Server;
  beforeAll(async () => {
    server = await world.server({ args: ["--toolsets", "agent,query"] });
  });

  async function startQuery(prompt: string, kind?: { wantsLogs: boolean }) {
    const controller = new AbortController();
    const started = new Promise<string>((resolve) => {
      const onLog = ({ data }: { data: unknown }) => {
        const { message, sessionId } = JSON.parse(String(data)) as Told;
        if (message.type === "assistant") resolve(sessionId);
      };
      const options = { signal: controller.signal, onLog, ...kind };
      stream(server, QUERY, { prompt, cwd: world.folder(), allowedTools: ["Bash"] }, options).catch(() => undefined);
    });
    return { controller, sessionId: await started };
  }

  it("a query is interrupted when its client goes away", async () => {
    server = await world.server({ args: ["--toolsets", "agent,query"] });
    const { sessionId } = await startQuery(scriptTag([{ tools: [forever] }, { text: "never" }]));
    await server.close();
    server = await world.server();
    const ended = await server.end(sessionId);
    expect(ended).toMatchObject({ status: "idle", result: { isError: true } });
    expect(ended.result?.errorSubtype).toMatch(/interrupted|shutdown/);
  });
});

describe("a query whose caller can answer nothing", () => {
  let server: Server;
  let auditLog: string;
  beforeAll(async () => {
    auditLog = join(world.folder(), "audit.jsonl");
    // Separate home, so that the log has no lines of the tests above.
    const env = { HOME: world.folder() };
    server = await world.server({ args: ["--toolsets", "query,chat", "--audit-log", auditLog], env });
  });

  it("a query refused by the API is reported in a notification, the result, the audit log and on stderr", async () => {
    const error = { status: 401 as const, message: "this key opens nothing", times: 99 };
    const { data, logs } = await stream(server, QUERY, { prompt: scriptTag([{ error }]), cwd: world.folder() });
    const failure = { category: "access", retryable: false, error: expect.stringMatching(/^access .*opens nothing/) };
    expect(data).toMatchObject({ status: "failed", result: { success: false, ...failure } });
    expect(logs.at(-1)?.level).toBe("error");
    const last = JSON.parse(String(logs.at(-1)?.data)) as object;
    expect(last).toMatchObject({ type: "claude_code_error", sequence: logs.length, ...failure });
    const prompt = scriptTag([{ text: "Well." }]);
    const { data: done } = await stream(server, QUERY, { prompt, cwd: world.folder() });
    expect(await server.refusal(QUERY, { prompt, cwd: "/nowhere/at/all" })).toMatchObject({ code: "INVALID_ARGUMENT" });

    const entry = { principal: "local", tool: QUERY };
    const [failed, well] = [data, done].map(({ sessionId }) => ({ ...entry, sessionId }));
    const told = [
      { ...failed, permissionMode: "dontAsk", outcome: "begun" },
      { ...failed, outcome: "failed" },
      { ...well, permissionMode: "dontAsk", outcome: "begun" },
      { ...well, outcome: "ok" },
      { ...entry, outcome: "INVALID_ARGUMENT" },
    ];
    const lines = (text: string) =>
      text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines(readFileSync(auditLog, "utf8")).filter(({ tool }) => tool === QUERY)).toMatchObject(told);
    const written = () => lines(server.stderr()).filter(({ msg }) => String(msg).startsWith("query "));
    const words = ["query begun", "query ended"];
    // The log arrives through another pipe than the answer.
    await expect
      .poll(written)
      .toMatchObject(told.map((each) => ({ ...each, level: "info", msg: words[each.outcome === "begun" ? 0 : 1] })));
  });

  it("a failed chat turn keeps the work so far, says whether to retry, and is not INTERNAL", async () => {
    const read = { name: "Read", input: { file_path: "/nowhere/at/all" } };
    const error = { status: 401 as const, message: "this key opens nothing", times: 99 };
    const prompt = scriptTag([{ text: "I begin.", tools: [read] }, { error }]);
    const { blocks, data: failed, isError, logs } = await stream(server, "claude_direct_query", { prompt });
    expect(isError).toBe(true);
    const failure = { category: "access", retryable: false, error: expect.stringMatching(/^access .*opens nothing/) };
    expect(failed).toMatchObject({ isError: true, status: "failed", ...failure, metadata: { numTurns: 2 } });
    expect(failed).toMatchObject({ toolInvocations: [{ name: "Read", success: false }] });
    expect(failed).not.toHaveProperty("code");
    expect(blocks[0]).toMatch(/^Error: The turn failed: access .*opens nothing/);
    expect(logs.find(({ level }) => level === "error")?.data).toMatchObject(failure);
    const written = () => {
      const found = server.stderr().split("\n");
      return JSON.parse(found.findLast((line) => line.includes("claude_direct_query")) ?? "{}") as object;
    };
    await expect.poll(written).toMatchObject({
      level: "info",
      msg: "query ended",
      outcome: "failed",
      sessionId: failed["sessionId"],
    });
  });

  it("a query denies a tool use that needs approval at once, with a reason that Claude Code can act upon", async () => {
    const cwd = world.folder();
    const args = { prompt: writing(join(cwd, "a.txt")), cwd, permissionMode: "default" };
    const { data } = await stream(server, QUERY, args);
    expect(data).toMatchObject({ status: "done", result: { success: true, summary: "Done." } });
    expect(JSON.stringify(data["messages"])).toContain("No approver can answer a request here");
    expect(existsSync(join(cwd, "a.txt"))).toBe(false);
  });

  it("a query reports its messages as progress if the client takes no log notifications", async () => {
    const read = { name: "Read", input: { file_path: "/nowhere/at/all" } };
    const script = [
      { text: "I look around.", tools: [read] },
      { text: "End.", gateBefore: "looked" },
    ];
    const onProgress = (message: string | undefined) => message?.startsWith("I look") && world.model.release("looked");
    const args = { prompt: scriptTag(script), cwd: world.folder() };
    const { data, logs, progress } = await stream(server, QUERY, args, { wantsLogs: false, onProgress });
    expect(data).toMatchObject({ result: { summary: "End." } });
    expect(logs).toEqual([]);
    expect(progress.map((each) => each.progress)).toEqual(progress.map((_, index) => index + 1));
  });

  it("a query delivers a burst of 2,000 messages in order and complete", { timeout: 180_000 }, async () => {
    const reads = Array.from({ length: 250 }, (_, index) => ({
      name: "Read",
      input: { file_path: `/nowhere/${String(index)}` },
    }));
    const script = [...Array.from({ length: 4 }, () => ({ tools: reads })), { text: "Done." }];
    const args = { prompt: scriptTag(script), cwd: world.folder(), maxMessages: 5 };
    const { data, logs } = await stream(server, QUERY, args);
    expect(data).toMatchObject({ status: "done", result: { summary: "Done." } });
    const total = data["totalMessages"] as number;
    expect(total).toBeGreaterThanOrEqual(2_000);
    expect(data).toMatchObject({ omitted: total - 5 });
    const told = logs.map((log) => (JSON.parse(String(log.data)) as Told).sequence);
    expect(told).toEqual(Array.from({ length: total }, (_, index) => index + 1));
  });
});
