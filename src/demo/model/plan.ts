/** Headers about the plan of a subscription, which Claude Code reads in each answer. */
import { z } from "zod";

const HEADER = "anthropic-ratelimit-unified-";

/** End of a window: `resetsAt` as in the header, seconds since the epoch, or `resetsInS` from the answer on. */
const reset = { resetsAt: z.int().min(0).optional(), resetsInS: z.int().min(0).optional() };
const STATUS = ["allowed", "allowed_warning", "rejected"] as const;

const Window = z.strictObject({
  /** Used share, 0 to 1. */
  used: z.number().min(0).optional(),
  ...reset,
  status: z.enum(STATUS).optional(),
  /** Share above which the API warns. */
  threshold: z.number().min(0).optional(),
});

/** Windows of the API, by their names in headers. */
const WINDOWS = [
  ["fiveHour", "5h"],
  ["sevenDay", "7d"],
  ["sevenDayOverageIncluded", "7d_oi"],
] as const;

export const Plan = z.strictObject({
  fiveHour: Window.optional(),
  sevenDay: Window.optional(),
  sevenDayOverageIncluded: Window.optional(),
  /** Default: `rejected` with an error, otherwise `allowed`. */
  status: z.enum(STATUS).optional(),
  /** Window that decides (`five_hour`, `seven_day_opus`, ...). An error 429 without it is a passing fault for Claude Code. */
  claim: z.string().min(1).optional(),
  ...reset,
  /** Requests that are paid beyond the plan. */
  overage: z
    .strictObject({
      status: z.enum(STATUS),
      inUse: z.boolean().optional(),
      disabledReason: z.string().min(1).optional(),
      ...reset,
    })
    .optional(),
});
export type Plan = z.infer<typeof Plan>;

/** Returns the headers of an answer; none without a `plan`. */
export function planHeaders(plan: Plan | undefined, usualStatus: "allowed" | "rejected"): Record<string, string> {
  if (!plan) return {};
  const { claim, overage, status = usualStatus } = plan;
  const { fiveHour, sevenDay } = plan;
  const own = secondsOf(plan) ?? secondsOf((claim === "five_hour" ? fiveHour : sevenDay) ?? fiveHour ?? sevenDay);
  const headers: Headers = [
    ["status", status],
    ["reset", own],
    ["representative-claim", claim],
    ...WINDOWS.flatMap(([name, header]) => windowHeaders(header, plan[name])),
    ["overage-status", overage?.status],
    ["overage-in-use", overage?.inUse],
    ["overage-disabled-reason", overage?.disabledReason],
    ["overage-reset", secondsOf(overage)],
  ];
  const given = headers.flatMap(([name, value]) =>
    value === undefined ? [] : [[HEADER + name, String(value)] as const],
  );
  return Object.fromEntries(given);
}

type Headers = readonly (readonly [name: string, value: boolean | number | string | undefined])[];

function windowHeaders(header: string, window: z.infer<typeof Window> | undefined): Headers {
  return [
    [`${header}-utilization`, window?.used],
    [`${header}-reset`, secondsOf(window)],
    [`${header}-status`, window?.status],
    [`${header}-surpassed-threshold`, window?.threshold],
  ];
}

function secondsOf(given: Pick<Plan, keyof typeof reset> | undefined): number | undefined {
  const { resetsAt, resetsInS } = given ?? {};
  return resetsAt ?? (resetsInS === undefined ? undefined : Math.floor(Date.now() / 1000) + resetsInS);
}
