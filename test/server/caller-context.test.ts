import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { jsonBytes } from "../../src/view/size.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Measures the size of answers in the context of a calling model. */

const world = useWorld({ agent: "stand-in" });
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

/** Runs the task to its end like a calling model: start, wait for news, allow each request. */
async function supervise(script: Script, responseMode?: string) {
  const answers: Answer[] = [];
  const costs: number[] = [];
  const cwd = world.folder();
  const counted = async (tool: string, args: Record<string, unknown>) => {
    const { bytes, answer } = await server.measured(tool, args);
    costs.push(bytes);
    answers.push(answer);
    return answer;
  };
  let news = await counted("claude_code", { prompt: scriptTag(script(cwd)), cwd, allowedTools: ["Bash(echo *)"] });
  const request = { sessionId: news.sessionId, waitMs: 40_000, ...(responseMode !== undefined && { responseMode }) };
  do {
    const [asked] = news.actions;
    const answer = asked && { action: "respond_permission", requestId: asked.requestId, decision: "allow" };
    news = await counted("claude_code_check", { action: "poll", ...request, cursor: news.nextCursor, ...answer });
  } while (news.status !== "idle");
  return {
    answers,
    cwd,
    told: answers.flatMap(({ events }) => events),
    bytes: costs.reduce((sum, each) => sum + each),
  };
}

type Script = (cwd: string) => Parameters<typeof scriptTag>[0];

describe("answers to a waiting caller", () => {
  const content = "All of this is to be written, and read before that. ".repeat(40).slice(0, 2_000);
  const files = ["a.txt", "b.txt"];
  const echo = (word: string) => ({ name: "Bash", input: { command: `echo ${word}`, description: `Say ${word}` } });
  const task: Script = (cwd) => {
    const [first, second] = files.map((file) => ({ name: "Write", input: { file_path: join(cwd, file), content } }));
    return [
      ...["one", "two", "three", "four"].map((word) => ({ tools: [echo(word)] })),
      { text: "Now I write the first file.", tools: [first!] },
      ...["five", "six", "seven", "eight"].map((word) => ({ tools: [echo(word)] })),
      { text: "And the second.", tools: [second!] },
      { text: "Both files are written." },
    ];
  };

  it("a task with ten tool calls and two approvals takes 4 calls and at most 2,560 bytes beside the inputs", async () => {
    const { answers, bytes, cwd, told } = await supervise(task);
    const beside = bytes - 2 * jsonBytes(content);
    process.stdout.write(
      `COST ten calls, two approvals: ${String(answers.length)} calls, ${String(beside)} bytes beside\n`,
    );
    expect([answers.length, beside <= 2_560]).toEqual([4, true]);
    // Inputs to approve are whole, and nothing is repeated.
    const asked = answers.flatMap(({ actions }) => actions);
    expect(asked.map(({ input }) => input)).toEqual(files.map((file) => ({ file_path: join(cwd, file), content })));
    const calls = told.map(({ data }) => [data["tool"] ?? "text", data["ok"]]);
    expect(calls.filter(([tool]) => tool !== "text")).toEqual(
      ["Bash", "Bash", "Bash", "Bash", "Write", "Bash", "Bash", "Bash", "Bash", "Write"].map((tool) => [tool, true]),
    );
    expect(told.map(({ type }) => type)).toEqual(told.map(() => "output"));
    const all = JSON.stringify(answers.slice(1));
    expect(all).not.toMatch(
      /"timestamp"|\d{4}-\d\d-\d\dT\d\d|lastEventId|lastToolUseId|toolUseI|see result|createdAt/i,
    );
    expect(answers.at(-1)?.result).toMatchObject({
      result: "Both files are written.",
      isError: false,
      usage: { costUsd: expect.any(Number), inputTokens: expect.any(Number), outputTokens: expect.any(Number) },
    });
    for (const gone of ["modelUsage", "totalCostUsd", "sessionId"])
      expect(answers.at(-1)?.result).not.toHaveProperty(gone);
  });

  it("answers in mode delta_compact keep timestamps, all kinds of events and all fields of requests and results", async () => {
    const { answers, told } = await supervise(task, "delta_compact");
    const kinds = ["output", "permission_request", "permission_result", "progress", "result"];
    expect([...new Set(told.map(({ type }) => type))].toSorted()).toEqual(kinds);
    expect(told.every(({ timestamp }) => timestamp !== undefined)).toBe(true);
    expect(answers[1]).toMatchObject({ sessionId: answers[0]?.sessionId, pollInterval: 1_000 });
    expect(answers[1]?.["lastEventId"]).toBe((answers[1]?.nextCursor ?? 0) - 1);
    const [asked] = answers[1]?.actions ?? [];
    for (const key of ["summary", "toolUseID", "suggestions", "createdAt", "expiresAt"])
      expect(asked).toHaveProperty(key);
    const { result } = answers.at(-1)!;
    for (const key of ["sessionId", "durationApiMs", "totalCostUsd", "sessionTotalCostUsd", "stopReason", "modelUsage"])
      expect(result).toHaveProperty(key);
    expect(result?.usage).toHaveProperty("input_tokens");
  });

  it("a short result within the wait takes less than 300 bytes, cost and tokens included", async () => {
    const prompt = scriptTag([{ text: "Six 42" }]);
    const { answer, bytes } = await server.measured("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
    expect(answer.result).toMatchObject({ result: "Six 42", usage: { costUsd: expect.any(Number), outputTokens: 20 } });
    expect(bytes).toBeLessThan(300);
  });

  it("a denied input of 20 KB is sent once; each later answer takes at most 640 bytes", async () => {
    const cwd = world.folder();
    const write = { name: "Write", input: { file_path: join(cwd, "a.txt"), content: "x".repeat(20_000) } };
    const prompt = scriptTag([{ text: "I write it.", tools: [write] }, { text: "It is not written." }]);
    // A start with `waitMs` returns the request, so no poll is needed.
    const asked = await server.measured("claude_code", { prompt, cwd, waitMs: 40_000 });
    expect(asked.answer).toMatchObject({
      events: [{ data: { text: "I write it." } }],
      actions: [{ input: write.input }],
    });
    const { requestId } = asked.answer.actions[0]!;
    const { sessionId } = asked.answer;
    const poll = { action: "poll", sessionId, waitMs: 40_000 };
    const respond = { ...poll, action: "respond_permission", requestId, decision: "deny" };
    const denied = await server.measured("claude_code_check", { ...respond, cursor: asked.answer.nextCursor });
    const cursor = denied.answer.nextCursor;
    const later = await server.measured("claude_code_check", { ...poll, cursor, waitMs: 0 });
    const again = await server.measured("claude_code_reply", {
      sessionId,
      prompt: scriptTag([{ text: "Right." }]),
      waitMs: 40_000,
    });
    const bytes = [asked, denied, later, again].map((each) => each.bytes);
    process.stdout.write(`COST a denied input of 20 KB: ${bytes.join(" + ")} bytes\n`);
    expect(Math.max(...bytes.slice(1))).toBeLessThanOrEqual(640);
    expect(later.answer.result?.["permissionDenials"]).toMatchObject([
      { tool_name: "Write", tool_input: { file_path: join(cwd, "a.txt") }, inputCut: true },
    ]);
  });

  it("a task with ten tool calls and two requests takes at most 5 calls and 3,072 bytes", async () => {
    const cwd = world.folder();
    for (let file = 0; file < 4; file += 1) {
      const body = Array.from({ length: 30 }, (_, line) => `export const value${String(line)} = ${String(file)};`);
      writeFileSync(join(cwd, `source-${String(file)}.ts`), body.join("\n"));
    }
    const bash = (command: string) => ({ name: "Bash", input: { command, description: "Look at the sources" } });
    const read = (file: number) => ({ name: "Read", input: { file_path: join(cwd, `source-${String(file)}.ts`) } });
    const edit = (file: number) => ({
      name: "Edit",
      input: {
        file_path: join(cwd, `source-${String(file)}.ts`),
        old_string: `export const value7 = ${String(file)};`,
        new_string: `export const value7 = compute(${String(file)});`,
      },
    });
    const script = [
      { text: "I look around first.", tools: [bash("ls -l")] },
      { tools: [read(0), read(1), read(2)] },
      { text: "The value is set in two places. I change the first.", tools: [edit(0)] },
      { tools: [bash("grep -n value7 *.ts"), read(3)] },
      { text: "Now the second.", tools: [edit(1)] },
      { tools: [bash("cat source-0.ts"), bash("wc -l *.ts")] },
      { text: "value7 is computed in source-0.ts and source-1.ts now; the other two files keep their constant." },
    ];
    const costs: number[] = [];
    const counted = async (tool: string, args: Record<string, unknown>) => {
      const { bytes, answer } = await server.measured(tool, args);
      costs.push(bytes);
      return answer;
    };
    let news = await counted("claude_code", { prompt: `Compute value7. ${scriptTag(script)}`, cwd });
    const { sessionId } = news;
    const told: Answer["events"] = [];
    let requests = 0;
    do {
      const [asked] = news.actions;
      const answer = asked && { action: "respond_permission", requestId: asked.requestId, decision: "allow" };
      requests += asked ? 1 : 0;
      news = await counted("claude_code_check", {
        action: "poll",
        sessionId,
        cursor: news.nextCursor,
        waitMs: 40_000,
        ...answer,
      });
      told.push(...news.events);
    } while (news.status !== "idle");

    const calls = told.filter(({ data }) => data["tool"] !== undefined);
    const outcomes = told.filter(({ data }) => data["ok"] !== undefined);
    expect([calls.length, outcomes.length, requests]).toEqual([10, 10, 2]);
    expect(news.result).toMatchObject({ isError: false, result: script.at(-1)?.text });
    const bytes = costs.reduce((sum, each) => sum + each, 0);
    process.stdout.write(
      `COST ten tool calls, two requests: ${String(costs.length)} calls, ${String(bytes)} bytes (${costs.join(" + ")})\n`,
    );
    expect(costs.length).toBeLessThanOrEqual(5);
    expect(bytes).toBeLessThanOrEqual(3_072);
  });
});
