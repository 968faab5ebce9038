import { Client } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import { sessionNotFound } from "../../src/domain/error.ts";
import { Wire } from "../kit/clients/mcp-wire.ts";

const info = { name: "test", version: "1.0.0" };
const EVENTS = "claude-code://sessions/s1/events";

interface Follower {
  readonly wire: Wire;
  readonly updates: string[];
  readonly follow: (...uris: string[]) => Promise<void>;
  readonly leave: () => Promise<void>;
  readonly close: () => Promise<void>;
}

async function old(): Promise<Follower> {
  const wire = new Wire();
  const client = new OldClient(info);
  const updates: string[] = [];
  const followed: string[] = [];
  client.setNotificationHandler(
    ResourceUpdatedNotificationSchema,
    ({ params }: { params: { uri: string } }) => void updates.push(params.uri),
  );
  await client.connect(wire);
  const follow = async (...uris: string[]) => {
    for (const uri of uris) await client.subscribeResource({ uri });
    followed.push(...uris);
  };
  const leave = async () => {
    for (const uri of followed) await client.unsubscribeResource({ uri });
  };
  return { wire, updates, follow, leave, close: async () => client.close() };
}

async function recent(): Promise<Follower> {
  const wire = new Wire();
  const client = new Client(info, { versionNegotiation: { mode: "auto" } });
  const updates: string[] = [];
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => void updates.push(params.uri));
  await client.connect(wire);
  let end: () => Promise<void> = () => Promise.resolve();
  const follow = async (...uris: string[]) => {
    const listening = await client.listen({ resourceSubscriptions: uris });
    end = async () => listening.close();
  };
  return { wire, updates, follow, leave: async () => end(), close: async () => client.close() };
}

/** Number of current subscribers of a session. */
function waits({ engine }: Wire): number {
  return engine.waits.filter(({ signal }) => !signal.aborted).length;
}

describe.each([
  ["2025", old],
  ["2026", recent],
])("following a session, %s era", (_, connect) => {
  it("changes of a session are reported at most once per quarter of a second, including the last one", async () => {
    const { close, follow, updates, wire } = await connect();
    const session = wire.engine.add();
    session.startTurn();
    await follow("claude-code://sessions/s1", EVENTS);
    const begin = performance.now();
    for (let each = 0; each < 50; each += 1) session.emitText(String(each));
    await expect.poll(() => updates.length).toBeGreaterThan(0);
    session.emitText("the last");
    // A change after the first notification is reported after the interval.
    await expect.poll(() => updates.length).toBe(4);
    expect(performance.now() - begin).toBeGreaterThan(240);
    expect(updates.filter((uri) => uri === EVENTS)).toHaveLength(2);
    expect(updates.filter((uri) => uri === "claude-code://sessions/s1")).toHaveLength(2);
    await close();
  });

  it("updates end with the subscription and with the connection", async () => {
    const { close, follow, leave, updates, wire } = await connect();
    const session = wire.engine.add();
    session.startTurn();
    await follow(EVENTS);
    await expect.poll(() => waits(wire)).toBe(1);
    await leave();
    await expect.poll(() => waits(wire)).toBe(0);
    session.emitText("unheard");
    await follow(EVENTS);
    await expect.poll(() => waits(wire)).toBe(1);
    expect(updates).toEqual([]);
    await close();
    await expect.poll(() => waits(wire)).toBe(0);
  });

  it("the deletion of a session is reported, and ends the subscription", async () => {
    const { close, follow, updates, wire } = await connect();
    const session = wire.engine.add();
    session.startTurn();
    await follow(EVENTS);
    await expect.poll(() => waits(wire)).toBe(1);
    wire.engine.get = () => Promise.reject(sessionNotFound("s1"));
    session.emitText("gone");
    await expect.poll(() => updates).toEqual([EVENTS]);
    expect(wire.engine.waits).toHaveLength(1);
    await close();
  });
});

describe("a subscription", () => {
  it("a subscription to an unknown resource is refused with an error in the 2025 era", async () => {
    const { close, follow, wire } = await old();
    wire.engine.add();
    await expect(follow("claude-code://sessions/nobody")).rejects.toMatchObject({
      message: expect.stringContaining("SESSION_NOT_FOUND") as string,
    });
    await expect(follow("weather://today")).rejects.toMatchObject({
      message: expect.stringContaining("There is no resource weather://today") as string,
    });
    await follow("claude-code://errors", "claude-code://sessions/s1", "claude-code://sessions/s1");
    await close();
  });

  it("an unknown resource is left out of the acknowledged subscriptions in the 2026 era", async () => {
    const { close, follow, wire } = await recent();
    wire.engine.add();
    await follow("claude-code://sessions/nobody", "claude-code://sessions/s1", "weather://today");
    const granted = wire.lines.find((line) => line.includes("subscriptions/acknowledged")) ?? "";
    expect(JSON.parse(granted)).toMatchObject({
      params: { notifications: { resourceSubscriptions: ["claude-code://sessions/s1"] } },
    });
    await close();
  });

  it("a connection can subscribe to at most 100 resources at a time", async () => {
    const { close, follow, leave, wire } = await old();
    wire.engine.add();
    const uris = Array.from(
      { length: 100 },
      (_, index) => `claude-code://sessions/s1/events?cursor=${String(index + 1)}`,
    );
    await follow(...uris);
    await expect(follow("claude-code://sessions/s1")).rejects.toMatchObject({
      message: expect.stringContaining("a connection can subscribe to at most 100 resources") as string,
    });
    await leave();
    await follow("claude-code://sessions/s1");
    await close();
  });
});
