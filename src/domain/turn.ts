import { z } from "zod";
import { JsonObject } from "./json.ts";
import { PlanLimit } from "./plan.ts";

/** Outcomes of a turn, see the table in docs/states.md. */
export const TurnOutcome = z.enum(["done", "failed", "interrupted", "lost", "cancelled"]);
export type TurnOutcome = z.infer<typeof TurnOutcome>;

/** Ends of sentences about a turn, or about the work of a turn. */
export const OUTCOME_WORDS: Readonly<Record<TurnOutcome, string>> = {
  done: "is done",
  failed: "failed",
  interrupted: "was interrupted",
  lost: "was lost",
  cancelled: "was cancelled",
};

/** Kind of a failure, so that a caller knows whether to retry, pay, log in or change the request. */
export const FailureCategory = z.enum([
  "access",
  "limit",
  "billing",
  "overloaded",
  "request",
  "connection",
  "configuration",
  "unknown",
]);
export type FailureCategory = z.infer<typeof FailureCategory>;

/** Failure of a prompt that Claude Code reports as done. */
const ResultFailure = z.object({ subtype: z.string(), category: FailureCategory, message: z.string() });
export type ResultFailure = z.infer<typeof ResultFailure>;

/**
 * Content of a `result` message of Claude Code. A turn can have several (background subagents end after the first).
 * `costUsdTotal` is cumulative over the session, as Claude Code counts; every other field is for this result alone.
 */
export const AgentResult = z.object({
  text: z.string(),
  isError: z.boolean(),
  subtype: z.string(),
  terminalReason: z.string().exactOptional(),
  stopReason: z.string().exactOptional(),
  apiErrorStatus: z.number().exactOptional(),
  category: FailureCategory.exactOptional(),
  failure: ResultFailure.exactOptional(),
  /** Set if the API has refused the last request at a limit of the plan. */
  limit: PlanLimit.exactOptional(),
  /** True if Claude was asked and answered nothing. */
  isEmpty: z.boolean().exactOptional(),
  /** Sentences for the caller. */
  warnings: z.array(z.string()).exactOptional(),
  promptIds: z.array(z.string()),
  /** True if Claude Code knows no price of a model, so that the cost is a guess. */
  hasUnknownPrice: z.boolean().exactOptional(),
  numTurns: z.number(),
  durationMs: z.number(),
  durationApiMs: z.number(),
  costUsdTotal: z.number(),
  structuredOutput: z.unknown().exactOptional(),
  usage: JsonObject.exactOptional(),
  modelUsage: JsonObject.exactOptional(),
  permissionDenials: z.array(JsonObject).exactOptional(),
});
export type AgentResult = z.infer<typeof AgentResult>;

/** Result of a turn, as recorded in its last event. Durations in ms, costs in USD. */
export const TurnResult = z.object({
  result: z.string(),
  isError: z.boolean(),
  outcome: TurnOutcome,
  errorSubtype: z.string().exactOptional(),
  category: FailureCategory.exactOptional(),
  code: z.string().exactOptional(),
  durationMs: z.number(),
  durationApiMs: z.number(),
  numTurns: z.number(),
  totalCostUsd: z.number(),
  sessionTotalTurns: z.number(),
  sessionTotalCostUsd: z.number(),
  stopReason: z.string().exactOptional(),
  structuredOutput: z.unknown().exactOptional(),
  usage: JsonObject.exactOptional(),
  modelUsage: JsonObject.exactOptional(),
  permissionDenials: z.array(JsonObject).exactOptional(),
});
export type TurnResult = z.infer<typeof TurnResult>;
