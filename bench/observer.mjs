/**
 * Measures when an event is durable, by polling the store's file from a separate thread. Another connection sees a write only
 * after its commit, and a commit that must reach the disk ends only then.
 */
import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

/** Polling interval, ms. An event happened within the last interval, so the midpoint is off by at most half an interval. */
const PERIOD_MS = 0.25;

/** Returns the time of the clock that all threads share, ms. */
export function sharedNow() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** `file` must be an existing store. */
export async function observe(file) {
  const ended = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL(import.meta.url), { workerData: { ended, file } });
  const seen = new Map();
  const waiting = new Map();
  worker.on("message", ({ name, at }) => {
    seen.set(name, at);
    waiting.get(name)?.(at);
  });
  await once(worker, "message");
  return {
    /**
     * Resolves to the `sharedNow` time at which the event was seen. Waits for the event, so call only for an event that has
     * happened.
     */
    durableSince: async (sessionId, eventId) => {
      const name = nameOf(sessionId, eventId);
      return seen.get(name) ?? (await new Promise((resolve) => waiting.set(name, resolve)));
    },
    async close() {
      Atomics.store(ended, 0, 1);
      await once(worker, "exit");
    },
  };
}

function nameOf(sessionId, eventId) {
  return `${sessionId} ${String(eventId)}`;
}

if (!isMainThread) await watch(workerData);

async function watch({ ended, file }) {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite") ?? (await import("@photostructure/sqlite"));
  const database = new DatabaseSync(file, { readOnly: true });
  const version = database.prepare("PRAGMA data_version");
  const news = database.prepare("SELECT rowid AS row, session_id AS session, id FROM events WHERE rowid > ?");
  let before = sharedNow();
  let [known, row] = [undefined, 0];
  tell({ name: "ready" });
  while (Atomics.wait(ended, 0, 0, PERIOD_MS) === "timed-out") {
    const at = sharedNow();
    const { data_version: found } = version.get();
    for (const event of found === known ? [] : news.all(row)) {
      tell({ name: nameOf(event.session, event.id), at: (before + at) / 2 });
      row = event.row;
    }
    [before, known] = [at, found];
  }
  database.close();
}

function tell(news) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has none
  parentPort.postMessage(news);
}
