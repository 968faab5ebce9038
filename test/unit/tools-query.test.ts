import { PassThrough } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { Wire } from "../kit/clients/mcp-wire.ts";
import { tools } from "../kit/tools/run.ts";

const MESSAGES = 2_000;
/** Size of both buffers of a stream plus one message, bytes. */
const HELD = 100_000;

const initialize = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "slow", version: "1" } },
};

interface Frame {
  id?: number;
  method?: string;
  params?: { data: string };
  result?: { structuredContent: { totalMessages: number; omitted: number; messages: object[] } };
}

it("a burst of messages reaches a slow client in order and complete, without piling up", async () => {
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const wire = new Wire({ streams: { stdin, stdout }, logs: true, tools: [tools.get("claude_code_query")!] });
  wire.engine.onPrompt = (session) => {
    session.emit({ type: "prompt.queued", data: { promptId: "t1", text: "" } });
    session.emit({ type: "turn.started", data: { turnId: "t1", origin: "prompt", promptIds: ["t1"] } });
    for (let n = 1; n < MESSAGES; n++) session.emitText(`${String(n)} ${"x".repeat(1_000)}`);
    session.finishTurn("done");
  };
  const send = (message: object) => stdin.write(`${JSON.stringify(message)}\n`);
  const frames: Frame[] = [];
  let rest = "";
  const readSome = () => {
    const lines = (rest + String(stdout.read() ?? "")).split("\n");
    rest = lines.pop() ?? "";
    frames.push(...lines.map((line) => JSON.parse(line) as Frame));
  };
  const isAnswered = (id: number) => frames.some((frame) => frame.id === id);
  send(initialize);
  for (; !isAnswered(1); await nextTurn()) readSome();
  send({ jsonrpc: "2.0", method: "notifications/initialized" });
  const args = { prompt: "Go.", maxMessages: 10 };
  send({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "claude_code_query", arguments: args } });

  let most = 0;
  for (let turns = 1; !isAnswered(2); turns++) {
    await nextTurn();
    most = Math.max(most, stdout.writableLength + stdout.readableLength);
    if (turns % 20 === 0) readSome();
  }
  expect(most).toBeGreaterThan(10_000);
  expect(most).toBeLessThan(HELD);
  const logged = frames.filter(({ method }) => method === "notifications/message");
  expect(logged.map(({ params }) => (JSON.parse(params!.data) as { sequence: number }).sequence)).toEqual(
    Array.from({ length: MESSAGES }, (_, index) => index + 1),
  );
  expect(frames.at(-1)).toMatchObject({
    id: 2,
    result: { structuredContent: { totalMessages: MESSAGES, omitted: MESSAGES - 10 } },
  });
});
