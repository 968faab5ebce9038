import type { SDKResultMessage } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import { windowName, type Account, type PlanLimit, type PlanReport, type WindowReport } from "../domain/plan.ts";
import type { AgentSignal } from "../engine/ports.ts";

/** Reads the API's reports on the plan of a subscription: in messages of Claude Code, and in the answer of its usage method. */

const Name = z.string().max(100);
/** Last time that a `Date` can hold, seconds since the epoch. */
const LAST_S = 8_640_000_000_000;
/** Time in headers, seconds since the epoch. Treats an impossible time as unknown. */
const Seconds = z
  .number()
  .min(0)
  .max(LAST_S)
  .transform((seconds) => seconds * 1000)
  .optional()
  .catch(undefined);

const Info = z.object({
  status: z.string(),
  /** Window that decides. Missing in a fault that is no limit of the plan, although its `status` is `rejected`. */
  rateLimitType: Name.optional(),
  resetsAt: Seconds,
  isUsingOverage: z.boolean().optional(),
  /** Missing in the types of the SDK. */
  unifiedWindows: z
    .record(Name, z.object({ utilization: z.number(), resetsAt: Seconds }))
    .catch({})
    .default({}),
});
type Info = z.infer<typeof Info>;

const Event = z.object({ rate_limit_info: Info });
/** Claude Code's message in place of the refused answer. Missing in the types of the SDK. */
const Refused = z.object({ api_error_params: z.object({ rate_limit_info: Info }) });

/** Message about a subagent that an error of the API has ended. */
const AGENT_ENDED = /^Agent terminated early due to an API error/;

/** Reads the messages of a process in order. */
export class PlanReader {
  readonly #account: Account | undefined;
  /** Limit in the last report; `undefined` if requests are allowed. Claude Code sends no event for an equal report. */
  #limit: PlanLimit | undefined;
  /** Limit in the last message of the main conversation. Its result may follow answers that subagents got meanwhile. */
  #refused: PlanLimit | undefined;

  /** Without an `account`, no signal is made. */
  constructor(account: Account | undefined) {
    this.#account = account;
  }

  /** Reads a `rate_limit_event`. */
  readEvent(raw: JsonObject): AgentSignal[] {
    const info = Event.safeParse(raw).data?.rate_limit_info;
    this.#limit = info && limitIn(info);
    const message = info ? describe(info) : "rate_limit_event";
    return [...this.#signals(info), { type: "notice", kind: "rate_limit", message, details: raw }];
  }

  /** Reads an assistant's message. Reports a refusal that is equal to an earlier one of another process or owner. */
  readAssistant(raw: JsonObject): AgentSignal[] {
    // Said by an answer of the API, so that a refusal which another server has read no longer counts.
    if (raw["error"] === undefined) this.#limit = undefined;
    const info = Refused.safeParse(raw).data?.api_error_params.rate_limit_info;
    // Claude Code names no window of a limit on overage alone.
    const refused = info && { ...info, rateLimitType: info.rateLimitType ?? "overage" };
    const limit = refused && limitIn(refused);
    if (typeof raw["parent_tool_use_id"] !== "string") this.#refused = limit;
    if (!limit || isEqual(limit, this.#limit)) return [];
    this.#limit = limit;
    return this.#signals(refused);
  }

  /** Returns the limit at which the API has refused the last request; `undefined` for every other result. */
  limitOf(message: SDKResultMessage): PlanLimit | undefined {
    const isRefused = message.is_error && message.subtype === "success" && message.terminal_reason === "api_error";
    return isRefused && message.api_error_status === 429 ? (this.#refused ?? this.#limit) : undefined;
  }

  /** Returns a sentence about a subagent that the API has refused, from its `task_notification`. */
  lostAgent({ status, summary }: JsonObject): string | undefined {
    const isEnded = status === "failed" && typeof summary === "string" && AGENT_ENDED.test(summary);
    const limit = this.#limit;
    if (!isEnded || !limit) return undefined;
    return `A subagent was refused at the plan's limit (${windowName(limit.window)}). Its work is lost, and Claude sees only that it failed.`;
  }

  #signals(info: Info | undefined): AgentSignal[] {
    const report = info && toReport(info);
    if (!this.#account || !report || (report.windows.length === 0 && !report.isUsingOverage)) return [];
    return [{ type: "plan", account: this.#account, report }];
  }
}

/** With overage, `rejected` means that requests are paid beyond the plan, so they go on. */
function limitIn({ isUsingOverage, rateLimitType: window, resetsAt, status }: Info): PlanLimit | undefined {
  if (status !== "rejected" || isUsingOverage === true || window === undefined) return undefined;
  return { window, ...(resetsAt !== undefined && { resetsAt }) };
}

function isEqual(one: PlanLimit | undefined, other: PlanLimit | undefined): boolean {
  return one?.window === other?.window && one?.resetsAt === other?.resetsAt;
}

function toReport(info: Info): PlanReport {
  const limit = limitIn(info);
  const shares = Object.entries(info.unifiedWindows).map(([window, { resetsAt, utilization }]): WindowReport => {
    return {
      window,
      usedPercent: percent(utilization * 100),
      ...(resetsAt !== undefined && { resetsAt }),
      source: "headers",
    };
  });
  const known = shares.find(({ window }) => window === limit?.window);
  const rejected: WindowReport[] = limit ? [{ ...known, ...limit, isRejected: true, source: "rejection" }] : [];
  const windows = [...shares.filter((share) => share !== known || !limit), ...rejected];
  return { windows, isUsingOverage: info.isUsingOverage === true };
}

function percent(value: number): number {
  return Math.round(value * 10) / 10;
}

function describe(info: Info): string {
  const { isUsingOverage, windows } = toReport(info);
  const sentences = [
    windows.map(describeWindow).join("; "),
    isUsingOverage ? "Requests are paid beyond the plan" : "",
  ].filter((sentence) => sentence !== "");
  if (sentences.length > 0) return sentences.join(". ");
  return info.status === "rejected" ? "The API limits requests for now, within the plan" : "The plan allows requests";
}

function describeWindow({ isRejected, resetsAt, usedPercent = 0, window }: WindowReport): string {
  const used = isRejected ? "used up" : `${String(Math.floor(usedPercent))} % used`;
  const reset = resetsAt === undefined ? "" : `, resets ${describeReset(resetsAt, window)}`;
  return `${windowName(window)}: ${used}${reset}`;
}

/** Returns `14:00 UTC`; for a window of several days, `2026-12-01 14:00 UTC`. */
function describeReset(resetsAt: number, window: string): string {
  const [day = "", time = ""] = new Date(resetsAt).toISOString().split("T");
  return `${window === "five_hour" ? "" : `${day} `}${time.slice(0, 5)} UTC`;
}

const Limit = z.object({ utilization: z.number(), resets_at: z.string().nullish() });

/** Returns the windows in the answer of the usage method; none for an API key, or with a token for inference only. */
export function readUsageWindows(answer: unknown): WindowReport[] {
  const limits = z.object({ rate_limits: z.record(z.string(), z.unknown()) }).safeParse(answer).data?.rate_limits ?? {};
  const named = Object.entries(limits).filter(([name]) => name !== "extra_usage");
  const { model_scoped: scoped } = limits;
  const byModel = z.array(z.looseObject({ display_name: z.string() })).safeParse(scoped).data ?? [];
  const all = [
    ...named,
    ...byModel.map(
      (each) => [`seven_day_${each.display_name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "_")}`, each] as const,
    ),
  ];
  return all.flatMap(([window, value]) => {
    const limit = Limit.safeParse(value).data;
    if (!limit || !Name.safeParse(window).success) return [];
    const resetsAt = Date.parse(limit.resets_at ?? "");
    const reset = Number.isNaN(resetsAt) ? {} : { resetsAt };
    return [{ window, usedPercent: percent(limit.utilization), ...reset, source: "usage" } as const];
  });
}
