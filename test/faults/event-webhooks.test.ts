import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { EventReceiver, newSecret, Subscriber } from "../kit/clients/event-receiver.ts";
import { amount } from "../kit/runner/amount.ts";
import { constants } from "../kit/servers/constants.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Servers of a store, killed one after another at random moments between an event and its delivery. */

const KILLS = amount(4, 50);
/** Longest time from the end of a turn to the kill, ms: more than a delivery takes. */
const LATEST_MS = 120;

const world = useWorld({ agent: "stand-in" });
const { args: PRINCIPALS, tokens } = namedUsers({ ada: {} });

describe("webhooks of killed servers", { timeout: 60_000 + KILLS * 20_000 }, () => {
  it(`${String(KILLS)} kills lose no event, and each repetition of an event has the id of the first`, async () => {
    const receiver = await new EventReceiver(newSecret("the secret of these tests")).open();
    // Fails now and then, so that deliveries wait at the kill.
    receiver.answer = ({ response }) => void response.writeHead(Math.random() < 0.3 ? 503 : 200).end();
    const args = [...PRINCIPALS, "--event-webhooks", "any", "--store", join(world.folder(), "store.db")];
    const start = async () => {
      const http = await world.http({ args, env: constants({ notifyRetryMs: 50, notifyTimeoutMs: 200 }) });
      return { http, ada: await http.connect("modern", tokens.ada) };
    };
    let { ada, http } = await start();
    await new Subscriber(ada, receiver).subscribe({ ttlMs: null });
    const cwd = world.folder();
    const sessions: string[] = [];
    for (let n = 0; n < KILLS; n += 1) {
      const { sessionId } = await ada.call("claude_code", {
        prompt: scriptTag([{ text: "Done." }]),
        cwd,
        waitMs: 40_000,
      });
      sessions.push(sessionId);
      await sleep(Math.random() * LATEST_MS);
      http.signal("SIGKILL");
      await http.exited;
      ({ ada, http } = await start());
      await ada.call("claude_code_session", { action: "list" });
    }
    await expect.poll(() => receiver.ids().length, { timeout: 40_000 }).toBeGreaterThanOrEqual(KILLS);
    // An id per turn, so that none came under a new id.
    expect(
      receiver
        .ids()
        .map((id) => id.replace(/_\d+$/, ""))
        .toSorted((a, b) => a.localeCompare(b)),
    ).toEqual(sessions.toSorted((a, b) => a.localeCompare(b)));
    for (const { event, headers } of receiver.got) expect(headers["webhook-id"]).toBe(event.eventId);
    await receiver.close();
  });
});
