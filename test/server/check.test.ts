import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer, Server } from "./server.ts";
import { createWorld, type World } from "./world.ts";

let world: World;
let server: Server;
beforeAll(async () => {
  world = await createWorld();
  server = await world.server();
});
afterAll(async () => world.close());

const check = async (args: Record<string, unknown>) => server.call("claude_code_check", { waitMs: 40_000, ...args });

/** What a client's model is shown of an answer: the larger of its two forms. */
const bytesOf = (answer: Answer & { wire?: unknown }) => Buffer.byteLength(JSON.stringify(answer));

describe("what a waiting caller pays", () => {
  it("a task with ten tool calls and two requests: at most 5 calls and 6,144 bytes", async () => {
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
      if (process.env["DUMP"])
        writeFileSync(process.env["DUMP"] + String(costs.length), JSON.stringify(answer, null, 1));
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
    console.log(
      `ten tool calls, two requests: ${String(costs.length)} calls, ${String(bytes)} bytes (${costs.join(" + ")})`,
    );
    expect(costs.length).toBeLessThanOrEqual(5);
    expect(bytes).toBeLessThanOrEqual(6_144);
  });
});

describe("a client written for an earlier server", () => {
  it("starts, polls with a cursor every 200 ms, answers what is asked, and has the result", async () => {
    const cwd = world.folder();
    const file = join(cwd, "made.txt");
    const script = [
      { tools: [{ name: "Write", input: { file_path: file, content: "hello" } }] },
      { text: "It is made." },
    ];
    const started = await server.call("claude_code", { prompt: scriptTag(script), cwd });
    expect(started.pollInterval).toEqual(expect.any(Number));
    const { sessionId } = started;
    let cursor = started.nextCursor;
    let status = started.status;
    let last: Answer = started;
    const ids: number[] = [];
    const kinds = new Set<string>();
    while (status === "running" || status === "waiting_permission") {
      last = await server.call("claude_code_check", { action: "poll", sessionId, cursor });
      ids.push(...last.events.map(({ id }) => id));
      for (const { type } of last.events) kinds.add(type);
      ({ nextCursor: cursor, status } = last);
      for (const { requestId } of last.actions) {
        const decision = { action: "respond_permission", sessionId, requestId, decision: "allow", cursor };
        last = await server.call("claude_code_check", decision);
        ids.push(...last.events.map(({ id }) => id));
        for (const { type } of last.events) kinds.add(type);
        ({ nextCursor: cursor, status } = last);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(last).toMatchObject({ status: "idle", result: { result: "It is made.", isError: false } });
    expect(readFileSync(file, "utf8")).toBe("hello");
    expect(ids).toEqual([...new Set(ids)].toSorted((a, b) => a - b));
    expect([...kinds]).toEqual(expect.arrayContaining(["output", "permission_request", "permission_result", "result"]));
  });
});
