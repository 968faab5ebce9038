import { z } from "zod";
import { SessionWatch, type Topic } from "../session-watch.ts";
import type { Database } from "./connect/database.ts";
import { Hints } from "./hints.ts";

/** Interval of looks while somebody waits, ms: behind the hints, which may be lost. */
const LOOK_MS = 1_000;
/** Number of failed looks after which all readers look themselves, so that their callers learn the reason. */
const MAX_FAILURES = 25;

/** Reads an index range of each session that somebody waits for, in one statement. */
const sql = {
  heads: `SELECT s.id, s.last_event AS "lastEvent", s.epoch, s.owner,
      EXISTS (SELECT 1 FROM commands c WHERE c.session_id = s.id AND c.reply IS NULL) AS "isAsked"
    FROM sessions s WHERE s.id = ANY($1::text[])`,
} as const;

const Head = z.object({
  id: z.string(),
  lastEvent: z.int(),
  epoch: z.int(),
  owner: z.string().nullable(),
  isAsked: z.boolean(),
});
type Head = z.infer<typeof Head>;

/** Notifies readers of changes by any node: of this node at once, of others by hints and by looking. */
export class DatabaseWatch extends SessionWatch {
  readonly #db: Database;
  readonly #hints: Hints;
  #known = new Map<string, Head>();
  #looking = false;
  #failures = 0;
  #stop = (): void => undefined;

  constructor(db: Database, nodeId: string) {
    super();
    this.#db = db;
    const onHint = (sessionId?: string, topic?: Topic): void => {
      if (sessionId === undefined || topic === undefined) this.notifyAll();
      else this.notify(sessionId, [topic]);
    };
    this.#hints = new Hints(db, nodeId, { onHint });
  }

  /** Wakes readers at this and other nodes. */
  announce(sessionId: string, topics: readonly Topic[]): void {
    this.notify(sessionId, topics);
    this.#hints.send(sessionId, topics);
  }

  override close(): void {
    super.close();
    this.#stop();
  }

  /** Resolves once the last hints are sent. */
  async end(): Promise<void> {
    await this.#hints.close();
  }

  protected override onReader(): void {
    this.#hints.listen();
    void this.#look();
  }

  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    while (this.hasReaders && !this.isClosed) {
      await this.#pause();
      await this.#lookOnce();
    }
    this.#known.clear();
    this.#looking = false;
  }

  async #lookOnce(): Promise<void> {
    const [logs, commands] = [new Set(this.awaited("log")), new Set(this.awaited("commands"))];
    const ids = [...new Set([...logs, ...commands])];
    for (const topic of ["feed", "offers", "replies"] as const)
      for (const sessionId of this.awaited(topic)) this.notify(sessionId, [topic]);
    if (ids.length === 0) return;
    try {
      const found = await this.#db.all(sql.heads, Head, [ids], { attempts: 1 });
      const heads = new Map(found.map((head) => [head.id, head]));
      for (const id of ids) this.notify(id, changedTopics(this.#known.get(id), heads.get(id)));
      this.#known = heads;
      this.#failures = 0;
    } catch {
      this.#failures += 1;
      if (this.#failures >= MAX_FAILURES) this.notifyAll();
    }
  }

  async #pause(): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LOOK_MS).unref();
      this.#stop = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** A session that is gone, or was not looked at before, counts as changed. */
function changedTopics(before: Head | undefined, now: Head | undefined): Topic[] {
  if (!before || !now) return ["log", "commands"];
  const isAsked = now.isAsked || now.epoch !== before.epoch || now.owner !== before.owner;
  return [
    ...(now.lastEvent === before.lastEvent ? [] : (["log"] as const)),
    ...(isAsked ? (["commands"] as const) : []),
  ];
}
