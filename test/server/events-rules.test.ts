import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { openDatabase } from "../../src/store/sqlite/connect/driver.ts";
import type { Connection } from "../kit/clients/connection.ts";
import { EventsClient } from "../kit/clients/events-client.ts";
import { constants } from "../kit/servers/constants.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Events extension (SEP-3415): filters, cursors, limits, errors and principals. */

const READER = { scopes: ["read", "run"] };
const { args: PRINCIPALS, tokens } = namedUsers({ ada: READER, bob: READER });

const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
let connection: Connection;
let client: EventsClient;
beforeAll(async () => {
  const env = constants({ maxStreams: 4, cleanupIntervalMs: 200 });
  http = await world.http({ args: [...PRINCIPALS, "--rate-limit", "10000"], env });
  connection = await http.connect("modern", tokens.ada);
  client = new EventsClient(connection);
});

const name = "turn.ended";
const prompt = scriptTag([{ text: "Done." }]);

async function runTurn(by: Connection, cwd = world.folder(), over: object = {}): Promise<string> {
  return (await by.call("claude_code", { prompt, cwd, waitMs: 40_000, ...over })).sessionId;
}

const sessionsIn = (events: readonly { data: Record<string, unknown> }[]) =>
  events.map(({ data }) => data["sessionId"]);

it("a subscription to a session or a folder gets the events of that session or folder alone", async () => {
  const [one, other] = [world.folder(), world.folder()];
  const { cursor } = await client.poll({ name });
  const first = await runTurn(connection, one);
  const second = await runTurn(connection, other);
  const third = await runTurn(connection, one);
  const polled = async (filter: object) => sessionsIn((await client.poll({ name, cursor, arguments: filter })).events);
  expect(await polled({})).toEqual([first, second, third]);
  expect(await polled({ sessionId: second })).toEqual([second]);
  expect(await polled({ cwd: one })).toEqual([first, third]);
  expect(await polled({ cwd: one, sessionId: third })).toEqual([third]);
  expect(await polled({ cwd: one, sessionId: second })).toEqual([]);
  expect(await polled({ cwd: join(one, "below") })).toEqual([]);
});

it("a user sees only the events of own sessions, and cannot tell another user's session from none", async () => {
  const bob = await http.connect("modern", tokens.bob);
  const his = new EventsClient(bob);
  const { cursor } = await his.poll({ name });
  const stream = await his.stream({ name });
  const foreign = await runTurn(connection);
  const own = await runTurn(bob);
  await stream.until(() => stream.events().length > 0);
  expect(sessionsIn(stream.events())).toEqual([own]);
  expect(sessionsIn((await his.poll({ name, cursor })).events)).toEqual([own]);
  const refuse = async (sessionId: string) => {
    const refusal = await his.refusal("events/stream", { name, arguments: { sessionId } });
    return { ...refusal, message: refusal.message.replace(sessionId, "ID") };
  };
  const missing = await refuse("00000000-0000-4000-8000-000000000000");
  expect(missing).toMatchObject({ code: -32_011, data: { kind: "session" } });
  expect(await refuse(foreign)).toEqual(missing);
  await bob.close();
});

it.each(["events/poll", "events/stream"])(
  "%s refuses unknown names and wrong parameters, and names the field",
  async (method) => {
    const refuse = async (params: object) => client.refusal(method, params);
    const unknown = await refuse({ name: "turn.begun" });
    expect(unknown).toMatchObject({ code: -32_011, data: { kind: "event" } });
    expect(unknown.message).toContain("turn.ended");
    const wrong = [
      [{}, "name: is missing"],
      [{ name, arguments: { folder: "/" } }, "arguments.folder: unknown"],
      [{ name, arguments: { sessionId: 5 } }, "arguments.sessionId"],
      [{ name, cursor: "!" }, "cursor: is not a cursor of this server"],
      [{ name, maxAgeMs: -1 }, "maxAgeMs"],
    ] as const;
    for (const [params, text] of wrong) {
      const refusal = await refuse(params);
      expect(refusal).toMatchObject({ code: -32_602, message: expect.stringContaining(text) as string });
    }
    const secret = await runTurn(connection, world.folder(), { advanced: { persistSession: false } });
    expect(await refuse({ name, arguments: { sessionId: secret } })).toMatchObject({ code: -32_602 });
  },
);

it("`maxEvents` cuts an answer, `hasMore` says so, and the cursor goes on without a gap", async () => {
  const { cursor: start } = await client.poll({ name });
  const made = [await runTurn(connection), await runTurn(connection), await runTurn(connection)];
  const first = await client.poll({ name, cursor: start, maxEvents: 2 });
  expect([sessionsIn(first.events), first.hasMore]).toEqual([made.slice(0, 2), true]);
  const rest = await client.poll({ name, cursor: first.cursor, maxEvents: 2 });
  expect([sessionsIn(rest.events), rest.hasMore]).toEqual([made.slice(2), false]);
  // A smaller age than that of the events skips them, and says so.
  const aged = await client.poll({ name, cursor: start, maxAgeMs: 0 });
  expect(aged).toMatchObject({ events: [], truncated: true, hasMore: false });
  expect(await client.poll({ name, cursor: start, maxAgeMs: 600_000 })).toMatchObject({ truncated: false });
  const stream = await client.stream({ name, cursor: start, maxAgeMs: 600_000 });
  await stream.until(() => stream.events().length === 3);
  expect(sessionsIn(stream.events())).toEqual(made);
  expect(stream.cursor()).toBe(rest.cursor);
  await stream.cancel();
});

it("a cursor of another store, or older than the retention of a week, is `truncated` and goes on with a fresh cursor", async () => {
  const { cursor: old } = await client.poll({ name });
  await runTurn(connection);
  const { cursor: now } = await client.poll({ name });
  const database = await openDatabase(join(world.configFolder, "..", ".local/state/claude-agents-mcp/store.db"));
  database.exec("PRAGMA busy_timeout = 10000");
  database.prepare("UPDATE feed SET at = at - 8 * 86400000").all({});
  database.close();
  await expect.poll(async () => (await client.poll({ name, cursor: old })).truncated).toBe(true);
  const foreign = `${"0".repeat(12)}.1`;
  for (const cursor of [old, foreign]) {
    const polled = await client.poll({ name, cursor, timeoutMs: 30_000 });
    expect(polled).toMatchObject({ events: [], truncated: true, cursor: now });
  }
  const stream = await client.stream({ name, cursor: old });
  expect(stream.heard).toMatchObject([{ kind: "active", truncated: true, cursor: now }]);
  const sessionId = await runTurn(connection);
  await stream.until(() => stream.events().length > 0);
  expect(sessionsIn(stream.events())).toEqual([sessionId]);
  await stream.cancel();
});

it("a user can have 100 streams open, beyond the limit of open requests, and each ends with its cancellation", async () => {
  const streams = [];
  for (let count = 0; count < 100; count += 1) streams.push(await client.stream({ name }));
  const refused = await client.refusal("events/stream", { name });
  expect(refused).toMatchObject({ code: -32_013, data: { limit: "streams", max: 100 } });
  const bob = await http.connect("modern", tokens.bob);
  await (await new EventsClient(bob).stream({ name })).cancel();
  await bob.close();
  await streams[0]!.cancel();
  await expect.poll(async () => client.stream({ name }).then(() => "opened", String)).toBe("opened");
});
