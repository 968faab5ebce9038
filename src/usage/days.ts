import { invalidArgument } from "../domain/error.ts";
import type { Principal } from "../domain/principal.ts";
import { roundUsd } from "../domain/usage.ts";
import type { SessionLog, SessionQuery, SessionRecord, SessionRows } from "../engine/ports.ts";
import { quarterOf } from "./quarters.ts";
import { createYielder, QuarterCache } from "./quarter-cache.ts";
import { costliestFirst, getOrCreate, Sum } from "./sum.ts";

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;

/** Maximum number of sessions read at once, because each has its whole state. */
const PAGE = 50;

interface UsageQuery {
  /** Start, ms since the epoch. Rounded down to a quarter of an hour; at most a year back. Default: `DEFAULT_DAYS` ago. */
  readonly since?: number | undefined;
  /** Time zone of the days, an IANA name. Default: UTC. */
  readonly zone?: string | undefined;
}

interface Store {
  readonly rows: Pick<SessionRows, "list">;
  readonly log: Pick<SessionLog, "read">;
}

/** Reports the usage of a principal's sessions by days of a time zone. Throws `AppError`. */
export function createUsageReport(
  store: Store,
  now: () => number = Date.now,
): (principal: Principal, query: UsageQuery) => Promise<UsageReport> {
  const remembered = new QuarterCache(store.log);
  return async (principal, { since, zone = "UTC" }) => {
    const report = new Report(reportStart(since, now()), calendar(zone));
    const breathe = createYielder();
    for await (const record of sessionsOf(store, principal, report.since)) {
      report.add(record.spec.cwd, withOpen(await remembered.get(record, breathe), record, now()));
    }
    return report.usage();
  };
}

/** Adds the wait for unanswered requests, up to `now`. */
function withOpen(quarters: ReadonlyMap<number, Sum>, { state }: SessionRecord, now: number): ReadonlyMap<number, Sum> {
  if (state.requests.length === 0) return quarters;
  const at = quarterOf(now);
  const sum = new Sum();
  const before = quarters.get(at);
  if (before) sum.add(before);
  sum.waitedMs += Math.max(0, now - Math.min(...state.requests.map(({ createdAt }) => createdAt)));
  return new Map([...quarters, [at, sum]]);
}

function reportStart(since: number | undefined, now: number): number {
  if (since === undefined) return quarterOf(now - DEFAULT_DAYS * DAY_MS);
  if (!Number.isFinite(since)) throw invalidArgument("since", "must be a Unix timestamp in milliseconds.");
  return quarterOf(Math.max(since, now - MAX_DAYS * DAY_MS));
}

/** Returns a function from a time to its day, such as 2026-01-31. */
function calendar(zone: string): (at: number) => string {
  const format = formatOf(zone);
  const days = new Map<number, string>();
  return (at) => {
    const known = days.get(at);
    if (known !== undefined) return known;
    const { day, month, year } = Object.fromEntries(format.formatToParts(at).map((part) => [part.type, part.value]));
    const name = `${String(year)}-${String(month)}-${String(day)}`;
    days.set(at, name);
    return name;
  };
}

function formatOf(zone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: zone, year: "numeric", month: "2-digit", day: "2-digit" });
  } catch {
    throw invalidArgument(
      "zone",
      `is not a time zone: ${JSON.stringify(zone)}. Use an IANA name such as Europe/Berlin, or leave it out.`,
    );
  }
}

async function* sessionsOf(store: Store, principal: Principal, since: number): AsyncGenerator<SessionRecord> {
  let next: SessionQuery = { principal, since, limit: PAGE };
  for (;;) {
    const page = await store.rows.list(next);
    yield* page;
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    next = { ...next, before: { updatedAt: last.updatedAt, id: last.id } };
  }
}

type UsageReport = ReturnType<Report["usage"]>;

class Report {
  readonly since: number;
  readonly #dayOf: (at: number) => string;
  readonly #totals = new Sum();
  readonly #days = new Map<string, Sum>();
  readonly #directories = new Map<string, { readonly sum: Sum; sessions: number }>();

  constructor(since: number, dayOf: (at: number) => string) {
    this.since = since;
    this.#dayOf = dayOf;
  }

  /** Adds a session in the folder `cwd`. */
  add(cwd: string, quarters: ReadonlyMap<number, Sum>): void {
    const session = new Sum();
    let hasAny = false;
    for (const [at, sum] of quarters) {
      if (at < this.since) continue;
      hasAny = true;
      session.add(sum);
      getOrCreate(this.#days, this.#dayOf(at), () => new Sum()).add(sum);
    }
    if (!hasAny) return;
    this.#totals.add(session);
    const directory = getOrCreate(this.#directories, cwd, () => ({ sum: new Sum(), sessions: 0 }));
    directory.sum.add(session);
    directory.sessions += 1;
  }

  usage() {
    const days = [...this.#days].map(([day, sum]) => {
      const costs = [...sum.costByModel].map(([model, costUsd]) => [model, roundUsd(costUsd)] as const);
      return { day, ...amountsOf(sum), costByModel: Object.fromEntries(costs) };
    });
    const models = [...this.#totals.costByModel].map(([model, costUsd]) => ({ model, costUsd: roundUsd(costUsd) }));
    const directories = [...this.#directories].map(([cwd, { sessions, sum }]) => {
      return { cwd, sessions, ...amountsOf(sum) };
    });
    return {
      since: this.since,
      totals: amountsOf(this.#totals),
      days: days.toSorted((a, b) => (a.day < b.day ? -1 : 1)),
      models: models.toSorted(costliestFirst),
      directories: directories.toSorted(costliestFirst),
    };
  }
}

function amountsOf({ costUsd, durationMs, failed, tokens, turns, waitedMs, workedMs }: Sum) {
  return { turns, failed, costUsd: roundUsd(costUsd), tokens: { ...tokens }, durationMs, workedMs, waitedMs };
}
