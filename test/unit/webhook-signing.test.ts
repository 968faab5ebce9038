import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { backoffMs, parseRetryAfter, sign } from "../../src/webhooks/signing.ts";

const KEY = Buffer.from("a key of the tests, 32 bytes xx.");
const receiver = new Webhook(`whsec_${KEY.toString("base64")}`);

describe("the signature of a delivery", () => {
  const body = JSON.stringify({ type: "turn.ended", text: "Grüße – 日本" });

  it("the signature of a delivery is accepted by the Standard Webhooks library", () => {
    expect(receiver.verify(body, { ...sign([KEY], { id: "msg_1", at: Date.now(), body }) })).toEqual(JSON.parse(body));
  });

  it("the signature of a delivery covers id, time and body, and depends on the key", () => {
    const at = Date.now();
    const headers = { ...sign([KEY], { id: "msg_1", at, body }) };
    expect(() => receiver.verify(`${body} `, headers)).toThrow("No matching signature");
    expect(() => receiver.verify(body, { ...headers, "webhook-id": "msg_2" })).toThrow("No matching signature");
    const later = String(Math.floor(at / 1000) + 1);
    expect(() => receiver.verify(body, { ...headers, "webhook-timestamp": later })).toThrow("No matching signature");
    const other = { ...sign([Buffer.from("another")], { id: "msg_1", at, body }) };
    expect(() => receiver.verify(body, other)).toThrow("No matching signature");
  });

  it("a delivery signed with two keys is accepted by receivers with either, so that a key can be replaced", () => {
    const other = Buffer.from("the key that replaces, 32 bytes.");
    const headers = { ...sign([KEY, other], { id: "msg_1", at: Date.now(), body }) };
    expect(headers["webhook-signature"]).toMatch(/^v1,[\w+/=]+ v1,[\w+/=]+$/);
    expect(receiver.verify(body, headers)).toEqual(JSON.parse(body));
    expect(new Webhook(`whsec_${other.toString("base64")}`).verify(body, headers)).toEqual(JSON.parse(body));
  });

  it("a signature of an hour ago is rejected as a replay, so each attempt needs a new one", () => {
    const old = { ...sign([KEY], { id: "msg_1", at: Date.now() - 3_600_000, body }) };
    expect(() => receiver.verify(body, old)).toThrow("too old");
  });

  it("the signature of a delivery matches the example of the specification", () => {
    const key = Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64");
    const example = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", at: 1_614_265_330_000, body: '{"test": 2432232314}' };
    expect(sign([key], example)["webhook-signature"]).toBe("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });
});

describe("the delay before the next attempt", () => {
  const failed = (attempts: number, over: object = {}) => backoffMs({ attempts, retryMs: 2_000, random: 0.5, ...over });

  it("the delay before the next attempt is quadrupled each time, up to ten minutes", () => {
    expect([1, 2, 3, 4, 5, 6, 20].map((attempts) => failed(attempts))).toEqual([
      2_000, 8_000, 32_000, 128_000, 512_000, 600_000, 600_000,
    ]);
  });

  it("the delay before the next attempt varies by a quarter at random", () => {
    expect(failed(1, { random: 0 })).toBe(1_500);
    expect(failed(1, { random: 1 })).toBe(2_500);
  });

  it("the delay before the next attempt follows Retry-After, at least the backoff and at most ten minutes", () => {
    expect(failed(1, { retryAfterMs: 30_000 })).toBe(30_000);
    expect(failed(1, { retryAfterMs: 10 })).toBe(2_000);
    expect(failed(1, { retryAfterMs: 86_400_000 })).toBe(600_000);
  });

  it("Retry-After is parsed in seconds or as a date", () => {
    const now = Date.parse("2026-01-31T12:00:00Z");
    expect(parseRetryAfter("120", now)).toBe(120_000);
    expect(parseRetryAfter("Sat, 31 Jan 2026 12:00:30 GMT", now)).toBe(30_000);
    expect(parseRetryAfter("Sat, 31 Jan 2026 11:00:00 GMT", now)).toBe(0);
    expect(parseRetryAfter("soon", now)).toBeUndefined();
    expect(parseRetryAfter(null, now)).toBeUndefined();
  });
});
