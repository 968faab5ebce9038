import type { SDKResultMessage } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import { JsonObject } from "../domain/json.ts";
import type { AgentResult, FailureCategory } from "../domain/turn.ts";
import { roundUsd } from "../domain/usage.ts";

/**
 * Converts a result. `subtype: "success"` does not mean success, because API failures end with it too, so `is_error` decides.
 * `SideReports` detects further failures from earlier messages.
 */
export function toAgentResult(
  message: SDKResultMessage,
  assistantError: string | undefined,
): Omit<AgentResult, "text"> {
  const apiErrorStatus = message.subtype === "success" ? (message.api_error_status ?? undefined) : undefined;
  const structured = message.subtype === "success" ? message.structured_output : undefined;
  const promptIds = message.user_message_uuids ?? (message.user_message_uuid ? [message.user_message_uuid] : []);
  return {
    isError: message.is_error,
    subtype: message.subtype,
    promptIds: [...promptIds],
    numTurns: numberOrZero(message.num_turns),
    durationMs: numberOrZero(message.duration_ms),
    durationApiMs: numberOrZero(message.duration_api_ms),
    costUsdTotal: roundUsd(numberOrZero(message.total_cost_usd)),
    usage: JsonObject.parse(message.usage),
    modelUsage: exactModelUsage(message.modelUsage),
    permissionDenials: message.permission_denials.map((denial) => ({ ...denial })),
    ...(typeof message.terminal_reason === "string" && { terminalReason: message.terminal_reason }),
    ...(typeof message.stop_reason === "string" && { stopReason: message.stop_reason }),
    ...(typeof apiErrorStatus === "number" && { apiErrorStatus }),
    ...(structured !== undefined && { structuredOutput: structured }),
    ...(hasUnknownPrice(message) && { hasUnknownPrice: true }),
    ...(message.is_error && { category: categoryOf(message, apiErrorStatus, assistantError) }),
  };
}

const Priced = z.record(z.string(), z.object({ costBasis: z.string().optional() }));

/** The usage since the last result is missing in the types of the SDK, and in older versions. */
function hasUnknownPrice({ modelUsage, ...message }: SDKResultMessage): boolean {
  const { model_usage_since_last_result: used = modelUsage } = JsonObject.parse(message);
  return Object.values(Priced.safeParse(used).data ?? {}).some(({ costBasis }) => costBasis === "unknown");
}

/** Returns a result for the log, with costs rounded by `roundUsd`. */
export function withExactCosts(raw: JsonObject): JsonObject {
  const { modelUsage, total_cost_usd: total } = raw;
  const costs = {
    ...(typeof total === "number" && { total_cost_usd: roundUsd(total) }),
    ...(modelUsage !== undefined && { modelUsage: exactModelUsage(modelUsage) }),
  };
  return { ...raw, ...costs };
}

const Cost = z.looseObject({ costUSD: z.number() });

/** Returns Claude Code's own counts by model, with costs rounded by `roundUsd`. */
export function exactModelUsage(usage: unknown): JsonObject {
  const models = Object.entries(JsonObject.catch({}).parse(usage)).map(([model, counts]) => {
    const read = Cost.safeParse(counts);
    return [model, read.success ? { ...read.data, costUSD: roundUsd(read.data.costUSD) } : counts] as const;
  });
  return Object.fromEntries(models);
}

/** 0 for a missing number, because the turn must end nevertheless. */
function numberOrZero(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

/** Returns the result without Claude Code's internal diagnostics of an interrupt. */
export function resultText(message: SDKResultMessage): string {
  if (message.subtype === "success") return message.result;
  return message.errors.filter((error) => !error.startsWith("[ede_diagnostic]")).join("\n");
}

const BY_ASSISTANT_ERROR: Readonly<Record<string, FailureCategory>> = {
  authentication_failed: "access",
  oauth_org_not_allowed: "access",
  billing_error: "billing",
  rate_limit: "overloaded",
  overloaded: "overloaded",
  server_error: "overloaded",
  invalid_request: "request",
  model_not_found: "request",
  max_output_tokens: "limit",
};

function categoryOf(
  message: SDKResultMessage,
  status: number | undefined,
  assistantError: string | undefined,
): FailureCategory {
  if (message.subtype === "error_max_turns" || message.subtype === "error_max_budget_usd") return "limit";
  if (message.subtype === "error_during_execution" && message.startup_failure_reason) return "configuration";
  const known = assistantError === undefined ? undefined : BY_ASSISTANT_ERROR[assistantError];
  if (status !== undefined) return known ?? byStatus(status);
  // An API error without a status: no server answered.
  const unanswered = message.terminal_reason === "api_error" && (known === undefined || known === "overloaded");
  return unanswered ? "connection" : (known ?? "unknown");
}

function byStatus(status: number): FailureCategory {
  if (status === 401 || status === 403) return "access";
  if (status === 402) return "billing";
  if (status === 429 || status >= 500) return "overloaded";
  return status >= 400 ? "request" : "unknown";
}

/** Maximum length of a kept patch, characters of JSON. A larger change can be seen in the files. */
const MAX_PATCH_CHARS = 65_536;
const MAX_TEXT_CHARS = 500;
/** Maximum length of hook output, characters. Claude Code gives the model more than a reader needs. */
const MAX_HOOK_OUTPUT_CHARS = 4000;

/**
 * Trims the structured output of a tool (`tool_use_result`), because whole file bodies would double the size of the message.
 * Keeps the patch, short texts (paths, ids, states) and numbers. The output for the model is in the message anyway.
 */
export function trimToolResult(message: JsonObject): JsonObject {
  const { tool_use_result: output, ...rest } = message;
  const parsed = JsonObject.safeParse(output);
  if (!parsed.success) return rest;
  const kept = Object.entries(parsed.data).filter(([key, value]) => isKept(key, value));
  return kept.length === 0 ? rest : { ...rest, tool_use_result: Object.fromEntries(kept) };
}

/** Drops `stdout` and `stderr`, both contained in `output`. */
export function trimHookResponse(message: JsonObject, mask: (text: string) => string): JsonObject {
  const { stdout: _stdout, stderr: _stderr, output, ...rest } = message;
  return { ...rest, ...(typeof output === "string" && { output: mask(output).slice(0, MAX_HOOK_OUTPUT_CHARS) }) };
}

function isKept(key: string, value: unknown): boolean {
  if (key === "structuredPatch") return JSON.stringify(value).length <= MAX_PATCH_CHARS;
  if (typeof value === "string") return value.length <= MAX_TEXT_CHARS;
  return typeof value === "number" || typeof value === "boolean";
}
