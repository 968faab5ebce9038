import { effect, signal } from "@preact/signals";
import type { SessionList, SessionRow } from "../../../src/console/wire.ts";
import { ApiProblem, get } from "../net/api.ts";
import { onConnected, onRows } from "../state/live.ts";
import { me } from "../state/me.ts";
import { filtersOf, queryOf, type Filters } from "./filters.ts";
import { merge, newestFirst, rejoin } from "./merge.ts";

/** State of the list of sessions, kept while other views are shown. */

const PAGE = 50;

interface Listing {
  readonly filters: Filters;
  readonly rows: readonly SessionRow[];
  readonly next?: string;
}

const NO_FILTERS = filtersOf(new URLSearchParams());

/** `undefined` before the first answer. */
export const listing = signal<Listing | undefined>(undefined);
export const isLoading = signal(false);
export const problem = signal<unknown>(undefined);
/** Directories of all sessions seen, to choose from. */
export const directories = signal<readonly string[]>([]);

let currentFilters = NO_FILTERS;
/** Number of the latest `load`; earlier answers are ignored. */
let latestLoad = 0;
/** Rows changed since the latest `load` began. */
let changedMeanwhile: SessionRow[] = [];
let isHeld = false;
let askedAt = Number.NEGATIVE_INFINITY;
/**
 * Maximum age of a list that `onConnected` does not reload, ms: a new stream also reports changes from just before its start.
 */
const FRESH_MS = 3_000;

/** Loads the list for `filters`. The previous list stays until the answer arrives. */
export async function show(filters: Filters): Promise<void> {
  currentFilters = filters;
  const mine = latestLoad + 1;
  try {
    await load(async () => firstPage(filters));
    if (mine === latestLoad) problem.value = undefined;
  } catch (error) {
    // Ignores an unreachable server: `ConnectionBanner` reports the outage, and `watch` reloads the list afterwards.
    const isShown = listing.value !== undefined && key(listing.value.filters) === key(filters);
    const isGone = error instanceof ApiProblem && error.status === 0;
    if (mine === latestLoad && !(isGone && isShown)) problem.value = error;
  }
}

async function firstPage(filters: Filters): Promise<Listing> {
  const page = await fetchPage(filters);
  const before = listing.value;
  const isSame = before !== undefined && key(before.filters) === key(filters);
  const rows = isSame ? rejoin(page, before.rows) : page.sessions;
  const next = rows.length > page.sessions.length ? before?.next : page.next;
  return { filters, rows, ...(next !== undefined && { next }) };
}

export async function reload(): Promise<void> {
  await show(currentFilters);
}

/** Throws `ApiProblem`. */
export async function loadMore(): Promise<void> {
  const before = listing.value;
  if (before?.next === undefined) return;
  await load(async () => {
    const { sessions, next } = await fetchPage(before.filters, before.next);
    const isThere = new Set(before.rows.map(({ id }) => id));
    const rows = [...before.rows, ...sessions.filter(({ id }) => !isThere.has(id))];
    return { filters: before.filters, rows, ...(next !== undefined && { next }) };
  });
}

/** Keeps all rows in place while the pointer or the focus is on a row. */
export function holdRows(on: boolean): void {
  isHeld = on;
  const now = listing.value;
  if (!on && now) listing.value = { ...now, rows: newestFirst(now.rows) };
}

/** Delay before the search is repeated, ms: only the server knows which changed sessions match `text`. */
const ASK_AGAIN_MS = 2000;

/** Keeps the list up to date until the returned function is called. */
export function watch(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const again = () => {
    timer = undefined;
    void reload();
  };
  const ends = [
    onConnected(() => {
      if (performance.now() - askedAt > FRESH_MS) void reload();
    }),
    onRows((changed) => {
      applyChanges(changed);
      const shown = new Set(listing.value?.rows.map(({ id }) => id));
      if (currentFilters.text !== "" && changed.some(({ id }) => !shown.has(id)))
        timer ??= setTimeout(again, ASK_AGAIN_MS);
    }),
    () => clearTimeout(timer),
  ];
  return () => {
    for (const end of ends) end();
  };
}

function applyChanges(changed: readonly SessionRow[]): void {
  changedMeanwhile.push(...changed);
  const now = listing.value;
  if (!now) return;
  learnDirectories(changed);
  listing.value = { ...now, rows: merge(now.rows, changed, { filters: now.filters, hold: isHeld }) };
}

async function load(step: () => Promise<Listing>): Promise<void> {
  const mine = ++latestLoad;
  changedMeanwhile = [];
  askedAt = performance.now();
  isLoading.value = true;
  try {
    const loaded = await step();
    if (mine !== latestLoad) return;
    const rows = merge(loaded.rows, changedMeanwhile, { filters: loaded.filters, hold: isHeld });
    listing.value = { ...loaded, rows };
    learnDirectories(rows);
  } finally {
    if (mine === latestLoad) isLoading.value = false;
  }
}

async function fetchPage({ statuses, text, cwd }: Filters, before?: string): Promise<SessionList> {
  const sought = text.trim();
  return get<SessionList>("sessions", {
    status: statuses,
    text: sought === "" ? undefined : sought,
    cwd: cwd === "" ? undefined : cwd,
    limit: PAGE,
    before,
  });
}

function learnDirectories(rows: readonly SessionRow[]): void {
  const known = directories.value;
  const news = new Set(rows.map(({ cwd }) => cwd).filter((cwd) => !known.includes(cwd)));
  if (news.size > 0) directories.value = [...known, ...news].toSorted();
}

function key(filters: Filters): string {
  return queryOf(filters).toString();
}

/** Starts to clear the list at each sign-out, because the next user must not see the sessions. */
export function clearListAtSignOut(): void {
  effect(() => {
    if (me.value) return;
    latestLoad++;
    listing.value = undefined;
    directories.value = [];
  });
}
