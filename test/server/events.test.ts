import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { FEED_NAMES, feedEventId } from "../../src/domain/feed.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { ClientKind, Connection } from "../kit/clients/connection.ts";
import { EventsClient, expectPayload, type Occurrence } from "../kit/clients/events-client.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { half } from "../kit/runner/amount.ts";
import { useWorld } from "../kit/world.ts";

/** Events extension (SEP-3415): poll and stream in both eras, over stdio and HTTP. */

const SECRET = "tok-1234567890-never-shown";
const world = useWorld({ agent: "stand-in", daemon: "auto", plan: true });
let http: HttpServer;
beforeAll(async () => {
  http = await world.http({ env: { DEPLOY_TOKEN: SECRET } });
});

const ONE_DONE = scriptTag([{ text: "Done." }]);

async function runTurn(connection: Connection, over: object = {}): Promise<string> {
  const given = { prompt: ONE_DONE, cwd: world.folder(), waitMs: 40_000, ...over };
  return (await connection.call("claude_code", given)).sessionId;
}

const named = (events: readonly Occurrence[]) => events.map(({ data, name }) => `${name} ${String(data["sessionId"])}`);

const NASTY = `${"\u{1F600}\u0007\n".repeat(40)}"quoted" ${SECRET} ${"x".repeat(5_000)}`;
const FILE_TEXT = "the content of a file";

/** Makes an event of each kind, in sessions with nasty titles and inputs. Returns the ids of their sessions by name of the event. */
async function makeEach(connection: Connection): Promise<Record<string, string>> {
  const title = `${NASTY.slice(0, 100)} ${SECRET}`.slice(0, 200);
  const start = async (script: object[], over: object) =>
    runTurn(connection, { prompt: scriptTag(script), title, ...over });
  const write = { name: "Write", input: { file_path: "new.txt", content: FILE_TEXT } };
  const refused = { status: 429, plan: { claim: "five_hour", resetsInS: 3_600 } };
  const asked = await start([{ tools: [write] }, { text: "ok" }], { waitMs: 20_000 });
  const ran = await start([{ tools: [{ name: "Bash", input: { command: `echo ${NASTY}` } }] }, { text: "ok" }], {});
  const verified = await start([{ text: "ok" }], { allowedTools: ["Bash"], advanced: { verify: ["true"] } });
  const waits = await start([{ error: refused }], { waitMs: 0, advanced: { onLimit: "wait" } });
  return { "answer.needed": asked, nasty: ran, "verification.ended": verified, "session.waits": waits };
}

const onStdio = (kind: ClientKind) => ({
  kind,
  over: "stdio",
  connect: async () => world.server({ client: kind, env: { DEPLOY_TOKEN: SECRET } }),
});
const overHttp = (kind: ClientKind) => ({ kind, over: "HTTP", connect: async () => http.connect(kind) });

/** `half` keeps the first, third and fifth. */
const PLACES = [
  onStdio("modern"),
  overHttp("modern"),
  overHttp("legacy"),
  onStdio("legacy"),
  onStdio("v1"),
  overHttp("v1"),
];

describe.each(half(PLACES))("events, for a $kind client over $over", ({ connect }) => {
  let connection: Connection;
  let client: EventsClient;
  beforeAll(async () => {
    connection = await connect();
    client = new EventsClient(connection);
  });
  afterAll(async () => connection.close());

  it("every event is declared, listed with its schemas, polled and streamed under one id", async () => {
    expect(connection.client.getServerCapabilities()).toMatchObject({
      extensions: { "io.modelcontextprotocol/events": {} },
    });
    const listed = await client.list();
    expect(listed.map(({ name }) => name)).toEqual(FEED_NAMES);
    const cursors = await Promise.all(listed.map(async ({ name }) => (await client.poll({ name })).cursor));
    const streams = await Promise.all(listed.map(async ({ name }) => client.stream({ name })));
    const made = await makeEach(connection);
    for (const [at, { name }] of listed.entries()) {
      const { cursor: start = "", truncated } = streams[at]!.heard[0]!;
      expect([start, truncated]).toEqual([cursors[at], false]);
      const expected = name === "turn.ended" ? made["verification.ended"] : made[name];
      await streams[at]!.until(() => named(streams[at]!.events()).includes(`${name} ${expected}`));
      const polled = await client.poll({ name, cursor: cursors[at]! });
      const ids = polled.events.map(({ eventId }) => eventId);
      await streams[at]!.until(() => streams[at]!.events().length >= ids.length);
      expect(streams[at]!.events().map(({ eventId }) => eventId)).toEqual(expect.arrayContaining(ids));
      expect(new Set(ids).size).toBe(ids.length);
      for (const event of polled.events) {
        expectPayload(event, listed);
        expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThanOrEqual(2_048);
        expect(JSON.stringify(event)).not.toContain(FILE_TEXT);
        expect(JSON.stringify(event)).not.toContain(SECRET);
      }
      expect(await client.poll({ name, cursor: polled.cursor, timeoutMs: 0 })).toMatchObject({ events: [] });
      await streams[at]!.cancel();
    }
  });

  it("a held poll is answered by the next event, and ends empty at `timeoutMs`", async () => {
    const name = "turn.ended";
    const { cursor } = await client.poll({ name });
    const held = client.poll({ name, cursor, timeoutMs: 40_000 });
    const sessionId = await runTurn(connection);
    const answer = await held;
    expect(answer.events).toMatchObject([{ name, data: { sessionId, outcome: "done", status: "idle" } }]);
    const turn = Number(answer.events[0]!.eventId.split("_").at(-1));
    expect(answer.events[0]!.eventId).toBe(feedEventId(sessionId, turn));
    const before = performance.now();
    const empty = await client.poll({ name, cursor: answer.cursor, timeoutMs: 300 });
    expect(empty).toMatchObject({ events: [], truncated: false, hasMore: false, nextPollMs: 1_000 });
    expect(performance.now() - before).toBeGreaterThanOrEqual(290);
  });
});
