import type { JsonObject } from "../../../domain/json.ts";
import type { SessionOptions } from "../../../domain/options.ts";
import type { OpenAsk } from "../../../domain/permission.ts";
import { optionsOf, statusOf } from "../../../domain/session.ts";
import type { SessionRecord } from "../../../engine/ports.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { inUsd } from "../../present/result.ts";
import { cutText, fit, jsonBytes } from "../../present/size.ts";

/** A session as it is told: how it fares to everybody whose it is, what it is about only where that is allowed. */

/** The budget of an answer, bytes of JSON. */
export const ANSWER_BYTES = 32_768;

/** Nothing in here says what the session is about. */
export function publicView({ id, spec, state, createdAt, updatedAt }: SessionRecord): JsonObject {
  const { asks, background, closed, lastOutcome, process, queue, reported, totals, turn } = state;
  const { model: requestedModel, permissionMode: requestedMode = "default" } = optionsOf(spec, state);
  const model = reported.model ?? requestedModel;
  return {
    sessionId: id,
    status: statusOf(state),
    createdAt: isoTime(createdAt),
    lastActiveAt: isoTime(updatedAt),
    ...(turn && { turnStartedAt: isoTime(turn.startedAt) }),
    ...(model !== undefined && { model }),
    permissionMode: reported.permissionMode ?? requestedMode,
    requested: { ...(requestedModel !== undefined && { model: requestedModel }), permissionMode: requestedMode },
    reported: { ...reported },
    totalTurns: totals.turns,
    totalCostUsd: inUsd(totals.costUsd),
    ...(lastOutcome && { lastOutcome }),
    pending: asks.length,
    ...(asks.length > 0 && { asks: asks.map(askOf) }),
    queued: queue.length,
    ...(queue.some(({ held }) => held) && { held: queue.filter(({ held }) => held).length }),
    ...(background.length > 0 && { background: background.map((task) => ({ id: task.id, type: task.type })) }),
    ...(closed && { closed: { reason: closed.reason, by: cutText(closed.by, 100), at: isoTime(closed.at) } }),
    lastEventId: state.lastEventId,
    processStarts: state.processCount,
    ...placeOf(process),
  };
}

/** What answers hold until the session ends: each by its rule, and the risk up to which it does. */
export function rememberedOf({ state: { remembered = [] } }: SessionRecord): JsonObject {
  if (remembered.length === 0) return {};
  return { remembered: remembered.map(({ at, by, level, rule }) => ({ rule, risk: level, by, at: isoTime(at) })) };
}

function placeOf(process: SessionRecord["state"]["process"]): JsonObject {
  const waits = process.phase === "starting" && process.waiting === true;
  const processLive = !waits && (process.phase === "starting" || process.phase === "live");
  return { processLive, ...(waits && { waitsForPlace: true }) };
}

/**
 * The options that the sensitive tier tells as they are. Who adds an option decides whether it belongs here; what can
 * hold a credential does not.
 */
const TOLD = [
  "cwd",
  "additionalDirectories",
  "systemPrompt",
  "agents",
  "agent",
  "allowedTools",
  "disallowedTools",
  "tools",
  "maxTurns",
  "effort",
  "thinking",
  "fallbackModel",
  "strictMcpConfig",
  "outputFormat",
  "settingSources",
  "pathToClaudeCodeExecutable",
  "onLost",
  "permissionRequestTimeoutMs",
  "sessionInitTimeoutMs",
] as const satisfies readonly (keyof SessionOptions)[];

/** What gives way first when a session does not fit. */
const EXPENDABLE = ["outputFormat", "agents", "systemPrompt", "prompt"];

/** Both tiers within `most` bytes. `truncated` says that texts of the sensitive tier are cut. */
export async function sensitiveView(
  record: SessionRecord,
  most: number,
  { principal }: ToolCall,
  { engine, mask }: ToolDeps,
): Promise<JsonObject> {
  const { id, spec, state, title } = record;
  const first = await engine.read(principal, id, 1, FIRST_EVENTS);
  const prompt = first.find((event) => event.type === "prompt.queued")?.data.text;
  const leftOut = leftOutOf(spec);
  const told = mask({
    ...(title !== undefined && { title }),
    ...(prompt !== undefined && { prompt }),
    ...Object.fromEntries(TOLD.filter((key) => spec[key] !== undefined).map((key) => [key, spec[key]])),
    ...(spec.mcpServers && { mcpServers: mcpServersOf(spec.mcpServers) }),
    ...(state.background.length > 0 && { background: state.background }),
    ...(state.closed?.message !== undefined && { closedMessage: state.closed.message }),
  });
  const known = { ...publicView(record), ...(leftOut.length > 0 && { leftOut }) };
  const { cut, value } = fit(told, most - jsonBytes({ ...known, truncated: true }), EXPENDABLE);
  return { ...known, ...value, ...(cut && { truncated: true }) };
}

/** Nothing of note comes before the first prompt. */
const FIRST_EVENTS = 5;

function mcpServersOf(servers: NonNullable<SessionOptions["mcpServers"]>): JsonObject {
  return Object.fromEntries(Object.entries(servers).map(([name, { type = "stdio" }]) => [name, { type }]));
}

/** What no tier tells, by name, where the session has it: a token may stand in any of it. */
function leftOutOf({ env, mcpServers = {} }: SessionOptions): string[] {
  const fields = Object.values(mcpServers).flatMap((server) => Object.keys(server).filter((key) => key !== "type"));
  const ofServers = [...new Set(fields)].map((field) => `mcpServers.*.${field}`);
  return [...(env ? ["env"] : []), ...ofServers];
}

function askOf({ requestId, kind, toolName, createdAt, expiresAt }: OpenAsk): JsonObject {
  return { requestId, type: kind, toolName, createdAt: isoTime(createdAt), expiresAt: isoTime(expiresAt) };
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}
