import { z } from "zod";

/**
 * Plan windows of accounts: the share of a plan that a subscription has used, by window (5 hours, 7 days, per model), as the API
 * reports it to any process of the account.
 */

/** Account that pays for a process. `id` reveals no credential: account uuid, digest of a token, or configuration folder. */
export const Account = z.object({
  id: z.string(),
  /** Name of the payer, and configuration folder, for people. */
  paidBy: z.string(),
  configFolder: z.string(),
  /** False for API keys and cloud providers, which have no windows. */
  hasWindows: z.boolean(),
});
export type Account = z.infer<typeof Account>;

/**
 * Source of the knowledge about a window: `headers` of a good response, a `rejection` (which names no share), or Claude Code's
 * `usage` method.
 */
const WindowSource = z.enum(["headers", "rejection", "usage"]);

/** Time that a `Date` can hold, ms since the epoch. */
const Time = z.number().min(-8.64e15).max(8.64e15);

const Window = z.object({
  /** Used share, percent; absent if only a rejection is known. */
  usedPercent: z.number().exactOptional(),
  /** End of the window, ms since the epoch by the clock of the API. */
  resetsAt: Time.exactOptional(),
  /** True if the API refuses requests until the reset. */
  isRejected: z.boolean().exactOptional(),
  source: WindowSource,
});

/** Window in a report: `five_hour`, `seven_day`, `seven_day_opus`, ... in the words of the API. */
export const WindowReport = Window.extend({ window: z.string().max(100) });
export type WindowReport = z.infer<typeof WindowReport>;

/** Everything that one message of Claude Code says of its account's plan. */
export interface PlanReport {
  readonly windows: readonly WindowReport[];
  /** True if requests are paid beyond the plan at present. */
  readonly isUsingOverage: boolean;
}

/** Windows of an account, as stored for all servers. `at`: time of the last report, ms since the epoch. */
export const AccountWindows = Account.omit({ id: true, hasWindows: true }).extend({
  windows: z.record(z.string(), Window.extend({ at: Time })),
});
export type AccountWindows = z.infer<typeof AccountWindows>;

/** Maximum number of windows kept for an account. The least recently reported is forgotten first. */
const MAX_WINDOWS = 20;

/** Adds a report, the newest for each window. */
export function mergeReport(
  before: AccountWindows | undefined,
  { configFolder, paidBy }: Account,
  { report, at }: { readonly report: PlanReport; readonly at: number },
): AccountWindows {
  const now = report.windows.map(({ window, ...rest }) => [window, { ...rest, at }] as const);
  const all = Object.entries({ ...before?.windows, ...Object.fromEntries(now) });
  const kept = all.toSorted(([, one], [, other]) => other.at - one.at).slice(0, MAX_WINDOWS);
  return { configFolder, paidBy, windows: Object.fromEntries(kept) };
}

const HOUR_MS = 3_600_000;
const FIVE_HOUR = "five_hour";

/**
 * Returns the end of the knowledge about a window, ms since the epoch: its reset, but no later than a whole window from the
 * report, so that no wrong reset locks an account for ever. Without a reset, an hour from the report.
 */
export function knownUntil({ at, resetsAt = at + HOUR_MS }: AccountWindows["windows"][string], window: string): number {
  return Math.min(resetsAt, at + HOUR_MS * (window === FIVE_HOUR ? 5 : 7 * 24));
}

/**
 * Returns the used share of a window, percent. A window that is unknown, or whose reset has passed, counts as free; a rejection
 * counts as 100.
 */
export function usedPercent({ windows }: Pick<AccountWindows, "windows">, window: string, now: number): number {
  const found = windows[window];
  if (!found || knownUntil(found, window) <= now) return 0;
  return found.isRejected ? 100 : (found.usedPercent ?? 0);
}

const NAMES: ReadonlyMap<string, string> = new Map([
  [FIVE_HOUR, "5-hour window"],
  ["seven_day", "weekly window"],
  ["seven_day_opus", "weekly Opus window"],
  ["seven_day_sonnet", "weekly Sonnet window"],
]);

/** Returns the name of a window for people. */
export function windowName(window: string): string {
  return NAMES.get(window) ?? `window ${window}`;
}

const unlikePercent = "must be a percentage from 0 to 100, such as 15";
const percent = z.number(unlikePercent).min(0, unlikePercent).max(100, unlikePercent);

/** Percent of the windows that the operator keeps for people: agents stop before that share is all that is left. */
export const PlanReserve = z.strictObject(
  {
    /** Below this rest of the 5-hour window, no new turn starts. */
    fiveHour: percent.exactOptional(),
    /** Below this rest of the weekly window, running turns are also interrupted at their next tool call. */
    sevenDay: percent.exactOptional(),
    /** True to let turns go on with requests that are paid beyond the plan. */
    allowOverage: z.boolean("must be true or false").exactOptional(),
  },
  'must be an object with no other keys than fiveHour, sevenDay and allowOverage, such as {"fiveHour": 15}',
);
export type PlanReserve = z.infer<typeof PlanReserve>;

/** Refusal of a request by the API at a limit of the plan. `resetsAt`: ms since the epoch, if the API has named it. */
export const PlanLimit = z.object({ window: z.string(), resetsAt: z.number().exactOptional() });
export type PlanLimit = z.infer<typeof PlanLimit>;
