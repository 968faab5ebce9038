import { signal } from "@preact/signals";
import type { NodeList, PlanUse, Usage } from "../../../src/console/wire-usage.ts";
import { get } from "../net/api.ts";
import { onConnected, onRows } from "../state/live.ts";
import { startOfRange, type Range, ZONE } from "./range.ts";

/** State of the usage report, and updates. */

export const range = signal<Range>(30);
/** `of`: range of the report. The previous report stays while the next range loads. */
export const usage = signal<Shown | undefined>(undefined);
export const isLoading = signal(false);
export const problem = signal<unknown>(undefined);

interface Shown {
  readonly of: Range;
  readonly at: number;
  readonly data: Usage;
  readonly plan: PlanUse;
  readonly nodes: NodeList["nodes"];
}

/** Minimum interval between loads, ms, because sessions change all the time. */
const PAUSE_MS = 30_000;

let asked = 0;
let askedAt = 0;

/** Loads the report for `range`; earlier answers are ignored. */
export async function load(): Promise<void> {
  const of = range.value;
  const mine = ++asked;
  askedAt = Date.now();
  isLoading.value = true;
  try {
    const [data, plan, { nodes }] = await Promise.all([
      get<Usage>("usage", { since: startOfRange(of, new Date()), zone: ZONE }),
      get<PlanUse>("plan"),
      get<NodeList>("nodes"),
    ]);
    if (mine !== asked) return;
    usage.value = { of, at: Date.now(), data, plan, nodes };
    problem.value = undefined;
  } catch (error) {
    if (mine === asked) problem.value = error;
  } finally {
    if (mine === asked) isLoading.value = false;
  }
}

export function chooseRange(of: Range): void {
  range.value = of;
  void load();
}

/** Loads now, and again when sessions have changed, until the returned function is called. */
export function keepUsageCurrent(): () => void {
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
  /** Loads an update that came due while the page was hidden (`isDue`). */
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
    // Clears the report, because the next user may be another person.
    asked++;
    usage.value = undefined;
    problem.value = undefined;
    isLoading.value = false;
  };
}
