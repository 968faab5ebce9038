import { afterEach, describe, expect, it } from "vitest";
import { FencedError } from "../../src/engine/ports.ts";
import { type BackendOverride, collectErrors, LEASE_MS, twoNodes, type World } from "../kit/step/two-nodes.ts";

/** Errors that callers get for a session after its store has reported a loss (`isLoss`). */

class Loss extends Error {
  readonly isLoss = true;
}

const RETRY_MS = 1000;
const RENEW_MS = LEASE_MS / 6;

let world: World;
afterEach(() => world.close());

interface Store {
  /** Error with which each `append` and each `heartbeat` fails. */
  fault: Error | undefined;
  isGone: boolean;
}

/** Starts node a on a store that the test can break; `following` has the signal of each followed log. */
function start() {
  const store: Store = { fault: undefined, isGone: false };
  const following: AbortSignal[] = [];
  const between: BackendOverride = (backend) => ({
    log: {
      tail: (id, from, signal) => {
        following.push(signal);
        return backend.log.tail(id, from, signal);
      },
      append: async (...args) => (store.fault ? Promise.reject(store.fault) : backend.log.append(...args)),
    },
    leases: {
      heartbeat: async (ms) => (store.fault ? Promise.reject(store.fault) : backend.leases.heartbeat(ms)),
    },
    rows: { get: async (id) => (store.isGone ? undefined : backend.rows.get(id)) },
  });
  world = twoNodes({ a: between });
  return { ...world, following, store };
}

const LOST = "The session's log cannot be written: the file is gone. Its turn was stopped.";
const refused = { code: "INTERNAL", isLoss: true, message: LOST };

describe("a session whose store has lost data", () => {
  it("a session stops when its store loses data, and every later call gets the reason", async () => {
    const { a, store } = start();
    const id = await a.openWithRequest();
    store.fault = new Loss("the file is gone");
    await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ message: LOST });
    expect(a.runtime.lastProcess(id).calls.at(-1)).toBe("kill");
    await expect(a.engine.get("local", id)).rejects.toMatchObject(refused);
    await expect(a.engine.prompt("local", id, { text: "go on" })).rejects.toMatchObject(refused);
  });

  it("a wait ends with the reason once the store of its session has lost data, and no longer follows the log", async () => {
    const { a, clock, following, store } = start();
    const id = await a.openWithRequest();
    const sessions = [{ sessionId: id, cursor: 100 }];
    const { signal } = new AbortController();
    const request = { sessions, until: "end", timeoutMs: 600_000, signal } as const;
    const waited = a.engine.wait("local", request);
    await clock.pass(RETRY_MS);
    store.fault = new Loss("the file is gone");
    const ended = collectErrors([waited]);
    await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ message: LOST });
    clock.advance(RETRY_MS);
    expect(await ended).toMatchObject([refused]);
    expect(following.at(-1)?.aborted).toBe(true);
  });

  it("a loss of data is recorded in the session's log if the log can be written again", async () => {
    const { a, clock, store } = start();
    const id = await a.openWithRequest();
    store.fault = new Loss("the file is gone");
    await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ message: LOST });
    store.fault = undefined;
    clock.advance(RETRY_MS);
    await a.waitForEvent(id, "turn.ended");
    const notices = (await a.log(id)).filter(({ type }) => type === "notice");
    expect(notices).toMatchObject([{ data: { kind: "warning", message: LOST } }]);
  });

  it("a session with lost data is reported as lost, not as unknown, once the store no longer has it", async () => {
    const { a, clock, store } = start();
    const id = await a.openWithRequest();
    store.fault = new Loss("the file is gone");
    await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ message: LOST });
    store.fault = new FencedError("s");
    store.isGone = true;
    await clock.pass(RETRY_MS);
    await expect(a.engine.get("local", id)).rejects.toMatchObject(refused);
    await expect(a.engine.get("local", "another")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  it("a session stops at the renewal of its lease, before any write, if the store has lost data", async () => {
    const { a, clock, store } = start();
    const id = await a.openWithRequest();
    store.fault = new Loss("the file is gone");
    await clock.pass(RENEW_MS);
    expect(a.runtime.lastProcess(id).calls.at(-1)).toBe("kill");
    await expect(a.engine.get("local", id)).rejects.toMatchObject(refused);
  });
});

it("a failure of the store without loss of data reports that everything before is stored", async () => {
  const { a, store } = start();
  const id = await a.openWithRequest();
  store.fault = new Error("disk full");
  const message =
    "The session's log cannot be written: disk full. Its turn was stopped; everything reported before is stored.";
  await expect(a.engine.interrupt("local", id, "ann")).rejects.toMatchObject({ code: "INTERNAL", message });
  await expect(a.engine.get("local", id)).rejects.toMatchObject({ isLoss: false, message });
});
