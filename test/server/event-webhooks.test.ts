import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { EventReceiver, newSecret, Subscriber } from "../kit/clients/event-receiver.ts";
import { constants } from "../kit/servers/constants.ts";
import type { HttpConnection } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Webhooks of the Events extension (SEP-3415), with the built server and a receiver of the tests. */

const world = useWorld({ agent: "stand-in" });

const { args: PRINCIPALS, tokens } = namedUsers({ ada: {}, bob: {} });
const SECRET = newSecret("the first secret of these tests");
const OTHER = newSecret("another secret of these tests");
const SOON = constants({ notifyRetryMs: 50, notifyTimeoutMs: 1_000 });

const receivers: EventReceiver[] = [];
afterEach(async () => Promise.all(receivers.splice(0).map(async (receiver) => receiver.close())));

async function openReceiver(...secrets: string[]): Promise<EventReceiver> {
  const receiver = await new EventReceiver(...secrets).open();
  receivers.push(receiver);
  return receiver;
}

async function startServer(store = join(world.folder(), "store.db")) {
  return world.http({ args: [...PRINCIPALS, "--event-webhooks", "any", "--store", store], env: SOON });
}

async function runTurn(client: HttpConnection): Promise<string> {
  const prompt = scriptTag([{ text: "Done." }]);
  const { sessionId } = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
  return sessionId;
}

describe("a webhook for events", () => {
  it("`events/subscribe` asks the receiver for its consent, then sends signed events until `events/unsubscribe`", async () => {
    const receiver = await openReceiver(SECRET);
    const http = await startServer();
    const ada = await http.connect("modern", tokens.ada);
    const subscriber = new Subscriber(ada, receiver);
    await expect(subscriber.modes()).resolves.toEqual(["poll", "push", "webhook"]);
    const { cursor, deliveryStatus, id, truncated } = await subscriber.subscribe();
    expect([deliveryStatus, truncated, receiver.paths]).toEqual([undefined, false, ["/hook"]]);
    const sessionId = await runTurn(ada);
    await receiver.until(1);
    const [{ event, headers }] = receiver.got as [(typeof receiver.got)[0]];
    expect(event).toMatchObject({ name: "turn.ended", data: { sessionId, outcome: "done", status: "idle" } });
    expect(headers).toMatchObject({ "webhook-id": event.eventId, "x-mcp-subscription-id": id });
    expect(event.eventId.startsWith(`${sessionId}_`)).toBe(true);
    // A renewal has the position after what was delivered, and asks for no further consent.
    const renewed = await subscriber.subscribe({ cursor: event.cursor });
    expect(renewed).toMatchObject({ id, truncated: false, deliveryStatus: { active: true, lastError: null } });
    expect([renewed.cursor === cursor, receiver.paths.length]).toEqual([false, 2]);

    await subscriber.unsubscribe();
    await expect(subscriber.refusal({}, "events/unsubscribe")).resolves.toMatchObject({
      code: -32_011,
      data: { kind: "subscription" },
    });
    await runTurn(ada);
    // Begins where the subscription ended, so that the event between is the next delivery.
    await subscriber.subscribe({ cursor: renewed.cursor });
    await receiver.until(2);
    expect(receiver.ids()).toHaveLength(2);
  });

  it("a renewal with another secret signs with both secrets for a while", async () => {
    const receiver = await openReceiver(SECRET);
    const http = await startServer();
    const ada = await http.connect("modern", tokens.ada);
    const subscriber = new Subscriber(ada, receiver);
    const { id } = await subscriber.subscribe();
    await expect(subscriber.subscribe({ secret: OTHER })).resolves.toMatchObject({ id });
    // Accepts only what is signed with both.
    receiver.secrets = [OTHER, SECRET];
    await runTurn(ada);
    await receiver.until(1);
    expect(http.stderr()).not.toContain(SECRET.slice(6));
  });

  it("an event that a killed server has not delivered is delivered by the next server, under the same id", async () => {
    const receiver = await openReceiver(SECRET);
    receiver.answer = ({ response }) => void response.writeHead(503).end();
    const store = join(world.folder(), "store.db");
    const first = await startServer(store);
    const ada = await first.connect("modern", tokens.ada);
    await new Subscriber(ada, receiver).subscribe();
    await runTurn(ada);
    await receiver.until(1);
    first.signal("SIGKILL");
    await first.exited;
    const before = receiver.got.length;
    receiver.answer = ({ response }) => void response.end();
    await startServer(store);
    await receiver.until(before + 1);
    expect(receiver.ids()).toHaveLength(1);
  });

  it("a cursor replays what came since, at most `maxAgeMs` old; one that is too old is truncated", async () => {
    const receiver = await openReceiver(SECRET);
    const http = await startServer();
    const ada = await http.connect("modern", tokens.ada);
    const subscriber = new Subscriber(ada, receiver);
    const { cursor } = await subscriber.subscribe({ arguments: { cwd: "/nowhere" } });
    const sessionId = await runTurn(ada);
    await expect(subscriber.subscribe({ cursor, maxAgeMs: 0 })).resolves.toMatchObject({ truncated: true });
    await expect(subscriber.subscribe({ cursor, arguments: { sessionId } })).resolves.toMatchObject({
      truncated: false,
    });
    await receiver.until(1);
    // A cursor of another store, as after the loss of this one.
    const lost = await subscriber.subscribe({ cursor: "000000000000.1", name: "answer.needed" });
    expect([lost.truncated, lost.cursor.startsWith(cursor.slice(0, 12))]).toEqual([true, true]);
    expect(receiver.ids()).toHaveLength(1);
  });

  it("a subscription lasts an hour, or `ttlMs` within a minute and a day; null is a day", async () => {
    const receiver = await openReceiver(SECRET);
    const http = await startServer();
    const subscriber = new Subscriber(await http.connect("modern", tokens.ada), receiver);
    const lasts = async (ttlMs?: number | null) => {
      const { refreshBefore } = await subscriber.subscribe(ttlMs === undefined ? {} : { ttlMs });
      return Math.round((Date.parse(refreshBefore) - Date.now()) / 10_000) * 10;
    };
    expect([await lasts(), await lasts(1), await lasts(120_000), await lasts(1e12), await lasts(null)]).toEqual([
      3_600, 60, 120, 86_400, 86_400,
    ]);
  });

  it("a caller has at most 100 subscriptions, and another caller is not affected", async () => {
    const receiver = await openReceiver(SECRET);
    const http = await startServer();
    const subscriber = new Subscriber(await http.connect("modern", tokens.ada), receiver);
    for (let n = 0; n < 100; n += 1) await subscriber.subscribe({ arguments: { cwd: `/folder-${String(n)}` } });
    const [bob, refused] = [
      new Subscriber(await http.connect("modern", tokens.bob), receiver),
      await subscriber.refusal({}),
    ];
    expect(refused).toMatchObject({ code: -32_013, data: { limit: "subscriptions", max: 100 } });
    await expect(subscriber.subscribe({ arguments: { cwd: "/folder-0" } })).resolves.toMatchObject({
      truncated: false,
    });
    await bob.subscribe();
    // Asks for consent once for each principal and URL.
    expect(receiver.paths).toHaveLength(2);
  });

  it("`events/subscribe` refuses malformed URLs and secrets, unknown events and modes, and receivers without consent", async () => {
    const receiver = await openReceiver(SECRET);
    const http = await startServer();
    const subscriber = new Subscriber(await http.connect("modern", tokens.ada), receiver);
    const { url } = receiver;
    for (const bad of ["nonsense", "http://example.com/", url.replace("//", "//user:word@"), `${url}#part`]) {
      await expect(subscriber.refusal({ url: bad })).resolves.toMatchObject({ code: -32_602 });
    }
    await expect(subscriber.refusal({ url: `${url}?${"x".repeat(2_048)}` })).resolves.toMatchObject({ code: -32_602 });
    for (const secret of ["short", "whsec_c2hvcnQ=", `whsec_${"A".repeat(120)}`, `whsec_${"-".repeat(43)}=`]) {
      const { code, message } = await subscriber.refusal({ secret });
      expect([code, message.includes(secret)]).toEqual([-32_602, false]);
    }
    await expect(subscriber.refusal({ name: "no.event" })).resolves.toMatchObject({
      code: -32_011,
      data: { kind: "event" },
    });
    await expect(subscriber.refusal({ mode: "push" })).resolves.toMatchObject({
      code: -32_014,
    });
    const reasons = [];
    receiver.consent = (_, response) => void response.end('{"challenge":"another"}');
    reasons.push((await subscriber.refusal({})).data);
    receiver.consent = (_, response) => void response.writeHead(404).end();
    reasons.push((await subscriber.refusal({})).data);
    await receiver.close();
    const refused = await subscriber.refusal({});
    expect([...reasons, refused.data]).toEqual(
      ["challenge_failed", "http_4xx", "connection_refused"].map((reason) => ({ reason })),
    );
    expect(refused.code).toBe(-32_015);
  });
});

describe("the setting `--event-webhooks`", () => {
  it("with public, the operator and the user on stdio may name no webhook, and learn which flag allows it", async () => {
    const receiver = await openReceiver(SECRET);
    const http = await world.http({ args: PRINCIPALS });
    const [operator, ada] = [await http.connect(), await http.connect("modern", tokens.ada)];
    const stdio = await world.server({ client: "legacy" });
    for (const local of [operator, stdio]) {
      const subscriber = new Subscriber(local, receiver);
      await expect(subscriber.modes()).resolves.toEqual(["poll", "push"]);
      const { code, message } = await subscriber.refusal({});
      expect([code, message]).toEqual([-32_012, expect.stringContaining("--event-webhooks any")]);
    }
    const named = new Subscriber(ada, receiver);
    await expect(named.modes()).resolves.toEqual(["poll", "push", "webhook"]);
    await expect(named.refusal({})).resolves.toMatchObject({ code: -32_602 });
    expect(receiver.paths).toEqual([]);
  });

  it("with any, the user on stdio has webhooks; with off, nobody has", async () => {
    const receiver = await openReceiver(SECRET);
    const server = await world.server({ args: ["--event-webhooks", "any"], env: SOON });
    await new Subscriber(server, receiver).subscribe();
    await server.call("claude_code", { prompt: scriptTag([{ text: "Done." }]), cwd: world.folder(), waitMs: 40_000 });
    await receiver.until(1);
    const http = await world.http({ args: [...PRINCIPALS, "--event-webhooks", "off"] });
    const subscriber = new Subscriber(await http.connect("modern", tokens.ada), receiver);
    await expect(subscriber.modes()).resolves.toEqual(["poll", "push"]);
    await expect(subscriber.refusal({})).resolves.toMatchObject({ code: -32_014, data: { feature: "deliveryMode" } });
  });
});
