import { expect, it } from "vitest";
import { subscribe, unsubscribe } from "../../src/mcp/events/subscribe.ts";
import { keyOf } from "../../src/webhooks/receivers.ts";
import { memoryStore } from "../kit/store/memory.ts";

/** Lifetime and number of subscriptions of `events/subscribe`, on a store in memory whose clock the test moves. */

const NAME = "turn.ended";
const delivery = { mode: "webhook", url: "https://example.com/hook", secret: `whsec_${"A".repeat(43)}=` };

function open() {
  let now = 1_000_000;
  const { feed, outbox } = memoryStore({ tick: () => now }).connect("node");
  let challenges = 0;
  const webhooks = {
    outbox,
    keyOf,
    urlProblem: () => undefined,
    challenge: async () => Promise.resolve(void (challenges += 1)),
  };
  const parts = {
    feed,
    present: async () => Promise.resolve(undefined),
    filterOf: async (_: string, asked: object) => Promise.resolve(asked),
  };
  return {
    subscribe: async (principal: string, over: object = {}) =>
      subscribe({ name: NAME, delivery, ...over }, { parts, webhooks }, { principal }),
    unsubscribe: async (principal: string) => unsubscribe({ name: NAME, delivery }, webhooks, { principal }),
    advance: (ms: number) => void (now += ms),
    challenges: () => challenges,
  };
}

it("a subscription ends at `refreshBefore` unless it was renewed, and then needs a new consent", async () => {
  const hooks = open();
  const { id } = await hooks.subscribe("ada", { ttlMs: 60_000 });
  hooks.advance(59_999);
  await hooks.subscribe("ada", { ttlMs: 60_000 });
  hooks.advance(59_999);
  expect([await hooks.unsubscribe("ada"), hooks.challenges()]).toEqual([{}, 1]);
  await hooks.subscribe("ada", { ttlMs: 60_000 });
  hooks.advance(60_000);
  await expect(hooks.unsubscribe("ada")).rejects.toMatchObject({ code: -32_011, data: { kind: "subscription" } });
  expect(await hooks.subscribe("ada")).toMatchObject({ id, truncated: false });
  expect(hooks.challenges()).toBe(3);
});

it("a store has at most 1,000 subscriptions; a caller without any is refused, renewals are not, and an end makes room", async () => {
  const hooks = open();
  const folder = (n: number) => ({ arguments: { cwd: `/${String(n)}` } });
  for (let user = 0; user < 10; user += 1) {
    for (let n = 0; n < 100; n += 1) await hooks.subscribe(`user ${String(user)}`, n === 0 ? {} : folder(n));
  }
  const full = { code: -32_013, data: { limit: "subscriptions", max: 1_000 } };
  await expect(hooks.subscribe("late")).rejects.toMatchObject(full);
  await expect(hooks.subscribe("user 1", folder(100))).rejects.toMatchObject({ data: { max: 100 } });
  expect(await hooks.subscribe("user 1", folder(99))).toMatchObject({ truncated: false });
  await hooks.unsubscribe("user 1");
  expect(await hooks.subscribe("late")).toMatchObject({ truncated: false });
});
