import { signal } from "@preact/signals";
import type { Usage } from "../../../src/console/wire.ts";
import { get } from "../net/api.ts";
import { onConnected, onRows } from "../state/live.ts";
import { beginningOf, type Range, ZONE } from "./range.ts";

/** The usage report that is shown, and how it is kept up to date. */

export const range = signal<Range>(30);
/** `of` is the range of the report; a report stays while the next one loads. */
export const usage = signal<{ readonly of: Range; readonly at: number; readonly data: Usage } | undefined>(undefined);
export const isLoading = signal(false);
export const problem = signal<unknown>(undefined);

/** Sessions change all the time; the report is not loaded more often, ms. */
const PAUSE_MS = 30_000;

let asked = 0;
let askedAt = 0;

/** Only the last one that was asked for is shown. */
export async function load(): Promise<void> {
  const of = range.value;
  const mine = ++asked;
  askedAt = Date.now();
  isLoading.value = true;
  try {
    const data = await get<Usage>("usage", { since: beginningOf(of, new Date()), zone: ZONE });
    if (mine !== asked) return;
    usage.value = { of, at: Date.now(), data };
    problem.value = undefined;
  } catch (error) {
    if (mine === asked) problem.value = error;
  } finally {
    if (mine === asked) isLoading.value = false;
  }
}

/** Loads another range. */
export function choose(of: Range): void {
  range.value = of;
  void load();
}

/** Loads now, and again when sessions have changed, until the returned function is called. */
export function keepUp(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isDue = false;
  const reload = () => {
    clearTimeout(timer);
    timer = undefined;
    isDue = document.visibilityState === "hidden";
    if (!isDue) void load();
  };
  const soon = () => {
    timer ??= setTimeout(reload, Math.max(0, askedAt + PAUSE_MS - Date.now()));
  };
  /** The page is hidden: the update is loaded when it is visible again. */
  const onVisible = () => {
    if (isDue) soon();
  };
  document.addEventListener("visibilitychange", onVisible);
  const ends = [onRows(soon), onConnected(soon)];
  void load();
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisible);
    for (const end of ends) end();
    // The next user may be another one.
    asked++;
    usage.value = undefined;
    problem.value = undefined;
    isLoading.value = false;
  };
}
