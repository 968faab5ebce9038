import { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { Wire } from "../kit/clients/mcp-wire.ts";

const info = { name: "test", version: "1.0.0" };
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";

/** Returns the log notifications before the answer of a waiting call, while its session reports progress. */
async function logsOf(
  client: Client,
  wire: Wire,
  receivesLogs: boolean,
  meta?: Record<string, unknown>,
): Promise<unknown[]> {
  const logs: unknown[] = [];
  client.setNotificationHandler("notifications/message", ({ params }) => void logs.push({ ...params }));
  const session = wire.engine.add();
  session.startTurn();
  session.emitText("I look around");
  const poll = { action: "poll", sessionId: "s1", waitMs: 20_000 };
  const answer = client.callTool({ name: "claude_code_check", arguments: poll, ...(meta && { _meta: meta }) });
  // With `receivesLogs` the call waits a second time, for the next event.
  await expect.poll(() => wire.engine.waits.length).toBe(receivesLogs ? 2 : 1);
  session.finishTurn("Done.");
  await answer;
  return logs;
}

const LINE = { level: "info", logger: "claude_code", data: "I look around" };

describe("log notifications of a call that waits", () => {
  it.each([
    ["debug", [LINE]],
    ["info", [LINE]],
    ["warning", []],
  ] as const)(
    "a 2025 client that sets the level %s with `logging/setLevel` receives the logs %j",
    async (level, logs) => {
      const wire = new Wire();
      const client = new Client(info);
      await client.connect(wire);
      // oxlint-disable-next-line typescript/no-deprecated -- clients of this era have nothing else
      await client.setLoggingLevel(level);
      expect(await logsOf(client, wire, logs.length > 0)).toEqual(logs);
      await client.close();
    },
  );

  it("a 2025 client receives no logs before it sets a level", async () => {
    const wire = new Wire();
    const client = new Client(info);
    await client.connect(wire);
    expect(await logsOf(client, wire, false)).toEqual([]);
    await client.close();
  });

  it.each([
    ["info", [LINE]],
    ["error", []],
  ] as const)("a 2026 request with `logLevel` %s receives the logs %j", async (level, logs) => {
    const wire = new Wire();
    const client = new Client(info, { versionNegotiation: { mode: "auto" } });
    await client.connect(wire);
    const meta = { [LOG_LEVEL]: level };
    expect(await logsOf(client, wire, logs.length > 0, meta)).toMatchObject(logs);
    await client.close();
  });
});
