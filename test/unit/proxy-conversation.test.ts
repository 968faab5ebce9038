import { describe, expect, it } from "vitest";
import { Conversation } from "../../src/proxy/conversation.ts";

const line = (message: object) => JSON.stringify({ jsonrpc: "2.0", ...message });
const read = (text: string | undefined) =>
  JSON.parse(text ?? "null") as { id: unknown; params?: { requestId?: unknown } };
const initialize = line({ id: 0, method: "initialize", params: {} });
const initialized = line({ method: "notifications/initialized" });

describe("a conversation through a proxy", () => {
  it("a conversation is opened again byte for byte, and the answers to the repeated requests are dropped", () => {
    const conversation = new Conversation();
    const level = line({ id: 1, method: "logging/setLevel", params: { level: "info" } });
    const one = line({ id: 2, method: "resources/subscribe", params: { uri: "a" } });
    const other = line({ id: 3, method: "resources/subscribe", params: { uri: "b" } });
    const dropped = line({ id: 4, method: "resources/unsubscribe", params: { uri: "a" } });
    const listen = line({ id: "l", method: "subscriptions/listen" });
    for (const each of [initialize, initialized, level, one, other, dropped, listen]) {
      expect(conversation.fromClient(each)).toBe(each);
    }
    for (const id of [0, 1, 2, 3, 4]) conversation.fromDaemon(line({ id, result: {} }));
    expect(conversation.failOpen("gone")).toEqual([]);
    expect(conversation.awaitsNotifications).toBe(true);
    expect(conversation.replayLines()).toEqual([initialize, initialized, level, other, listen]);
    for (const id of [0, 1, 3]) expect(conversation.fromDaemon(line({ id, result: {} }))).toBeUndefined();
    const acknowledged = line({ method: "notifications/subscriptions/acknowledged" });
    expect(conversation.fromDaemon(acknowledged)).toBeUndefined();
    expect(conversation.fromDaemon(acknowledged)).toBe(acknowledged);
  });

  it("an open stream of events goes on with the last cursor heard, and its confirmation is passed on only with a gap", () => {
    const conversation = new Conversation();
    const request = (id: unknown, params: object) => line({ id, method: "events/stream", params });
    const notice = (kind: string, id: unknown, params: object) => {
      const meta = { "io.modelcontextprotocol/subscriptionId": id };
      return line({ method: `notifications/events/${kind}`, params: { ...params, _meta: meta } });
    };
    const plain = request("silent", { name: "turn.ended" });
    for (const id of [1, "1"]) conversation.fromClient(request(id, { name: "turn.ended", cursor: "a", maxAgeMs: 5 }));
    for (const each of [plain, request(2, {}), request(3, {})]) conversation.fromClient(each);
    for (const id of [1, "1", 2, 3]) conversation.fromDaemon(notice("active", id, { cursor: "a", truncated: false }));
    conversation.fromDaemon(notice("event", 1, { eventId: "e", cursor: "b" }));
    conversation.fromDaemon(notice("heartbeat", "1", { cursor: "c" }));
    conversation.fromDaemon(notice("error", "1", { error: {} }));
    conversation.fromClient(line({ method: "notifications/cancelled", params: { requestId: 2 } }));
    conversation.fromDaemon(line({ id: 3, result: {} }));
    expect([conversation.isWaiting, conversation.awaitsNotifications]).toEqual([false, true]);
    expect(conversation.failOpen("gone")).toEqual([]);
    expect(conversation.replayLines()).toEqual([
      request(1, { name: "turn.ended", cursor: "b" }),
      request("1", { name: "turn.ended", cursor: "c" }),
      plain,
    ]);
    const again = { cursor: "b", truncated: false };
    expect(conversation.fromDaemon(notice("active", 1, again))).toBeUndefined();
    const gap = notice("active", "1", { cursor: "d", truncated: true });
    expect(conversation.fromDaemon(gap)).toBe(gap);
    for (const id of ["silent", 1]) {
      expect(conversation.fromDaemon(notice("active", id, again))).toBe(notice("active", id, again));
    }
    const ended = line({ id: 1, error: { code: -32_011, message: "NotFound" } });
    expect(conversation.fromDaemon(ended)).toBe(ended);
    expect(conversation.replayLines()).toHaveLength(2);
  });

  it("a conversation is not opened again with requests whose failure the client was told", () => {
    const conversation = new Conversation();
    const subscribe = line({ id: 2, method: "resources/subscribe", params: { uri: "a" } });
    for (const each of [initialize, subscribe]) conversation.fromClient(each);
    expect(conversation.failOpen("gone").map(read)).toMatchObject([{ id: 0 }, { id: 2 }]);
    expect(conversation.replayLines()).toEqual([]);
    expect(conversation.awaitsNotifications).toBe(false);
  });

  it("a conversation keeps the sessions that calls and answers name, the latest last", () => {
    const conversation = new Conversation();
    const call = (id: number, fields: object) =>
      conversation.fromClient(line({ id, method: "tools/call", params: { name: "x", arguments: fields } }));
    call(1, { sessionId: "a" });
    call(2, { prompt: "b" });
    conversation.fromDaemon(line({ id: 2, result: { structuredContent: { sessionId: "b" } } }));
    for (const sessionId of ["a", 1, "x".repeat(101)]) call(3, { sessionId });
    expect(conversation.sessions).toEqual(["b", "a"]);
  });

  it("open calls get one error each when the daemon is gone, under ids of their own type", () => {
    const conversation = new Conversation();
    for (const id of [1, "1", 2]) conversation.fromClient(line({ id, method: "tools/call" }));
    conversation.fromDaemon(line({ id: 2, result: {} }));
    expect(conversation.isWaiting).toBe(true);
    const errors = conversation.failOpen("The daemon has ended.").map(read);
    expect(errors).toMatchObject([{ id: 1, error: { message: "The daemon has ended." } }, { id: "1" }]);
    expect([conversation.isWaiting, conversation.failOpen("again")]).toEqual([false, []]);
  });

  it("requests of daemons get ids that are never used again, and answers to a gone daemon are dropped", () => {
    const conversation = new Conversation();
    const ask = line({ id: 7, method: "elicitation/create" });
    const first = read(conversation.fromDaemon(ask)).id;
    expect(read(conversation.fromClient(line({ id: first, result: {} }))).id).toBe(7);
    const second = read(conversation.fromDaemon(ask)).id;
    const taken = line({ method: "notifications/cancelled", params: { requestId: 7 } });
    expect(read(conversation.fromDaemon(taken)).params?.requestId).toBe(second);
    const third = read(conversation.fromDaemon(ask)).id;
    expect(new Set([first, second, third]).size).toBe(3);
    expect(conversation.failOpen("gone").map(read)).toMatchObject([{ params: { requestId: third } }]);
    conversation.fromDaemon(ask);
    expect(conversation.fromClient(line({ id: third, result: {} }))).toBeUndefined();
  });

  it("a message without `result` or `error` is a request, and two requests with one id count twice", () => {
    const conversation = new Conversation();
    const odd = line({ id: 7, method: 5 });
    expect(conversation.fromClient(odd)).toBe(odd);
    for (const id of [7, 8]) conversation.fromClient(line({ id, method: "tools/call" }));
    conversation.fromDaemon(line({ id: 7, error: {} }));
    expect(conversation.failOpen("gone").map(read)).toMatchObject([{ id: 7 }, { id: 8 }]);
    expect(read(conversation.refusal(odd, "none"))).toMatchObject({ id: 7 });
  });

  it("the answer to a call with the id of an opening request is passed on", () => {
    const conversation = new Conversation();
    conversation.noteAnswered(initialize);
    conversation.replayLines();
    conversation.fromClient(line({ id: 0, method: "tools/call" }));
    expect(conversation.fromDaemon(line({ id: 0, result: {} }))).toBeUndefined();
    expect(conversation.isWaiting).toBe(true);
    const answer = line({ id: 0, result: { content: [] } });
    expect([conversation.fromDaemon(answer), conversation.isWaiting]).toEqual([answer, false]);
  });

  it("without a daemon only requests are refused, and unreadable messages are passed on", () => {
    const conversation = new Conversation();
    expect(read(conversation.refusal(line({ id: 5, method: "tools/list" }), "none"))).toMatchObject({ id: 5 });
    expect(conversation.refusal(line({ method: "notifications/cancelled" }), "none")).toBeUndefined();
    expect([conversation.fromClient("no JSON"), conversation.fromDaemon("[]")]).toEqual(["no JSON", "[]"]);
    conversation.fromClient(line({ id: 6, method: "tools/call" }));
    conversation.fromClient(line({ method: "notifications/cancelled", params: { requestId: 6 } }));
    expect(conversation.isWaiting).toBe(false);
  });
});
