import type { JsonObject } from "../../../domain/json.ts";
import type { SessionOptions } from "../../../domain/options.ts";
import { type OptionsWith, type OptionTraits, traitsOf } from "../../../domain/options/traits.ts";
import type { OpenRequest } from "../../../domain/permission.ts";
import { optionsOf, statusOf } from "../../../domain/session.ts";
import { UNREADABLE } from "../../../domain/unreadable.ts";
import type { SessionRecord } from "../../../engine/ports.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { inUsd } from "../../../view/result.ts";
import { cutText, fit, jsonBytes } from "../../../view/size.ts";

/** A session in answers: its status for every caller of its principal, its content only with the right scope. */

/** The budget of an answer, bytes of JSON. */
export const ANSWER_BYTES = 32_768;

/** Nothing in here says what the session is about. */
export function publicView({ id, spec, state, createdAt, unreadable, updatedAt }: SessionRecord): JsonObject {
  const { requests, background, closed, lastOutcome, process, queue, reported, totals, turn } = state;
  const options = optionsOf(spec, state);
  const requested = { permissionMode: "default", ...optionsShown(options, "public") };
  const model = reported.model ?? options.model;
  return {
    sessionId: id,
    status: statusOf(state),
    ...(unreadable && { errorSubtype: UNREADABLE }),
    createdAt: isoTime(createdAt),
    lastActiveAt: isoTime(updatedAt),
    ...(turn && { turnStartedAt: isoTime(turn.startedAt) }),
    ...(model !== undefined && { model }),
    permissionMode: reported.permissionMode ?? requested.permissionMode,
    requested,
    reported: { ...reported },
    totalTurns: totals.turns,
    totalCostUsd: inUsd(totals.costUsd),
    ...(lastOutcome && { lastOutcome }),
    pending: requests.length,
    ...(requests.length > 0 && { requests: requests.map(requestOf) }),
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
  return { processLive, ...(waits && !process.installing && { waitsForSlot: true }) };
}

type Shown = OptionTraits["shown"];

function optionsShown(options: SessionOptions, shown: Shown): JsonObject {
  return Object.fromEntries(Object.entries(options).filter(([name]) => traitsOf(name).shown === shown));
}

/** What the sensitive tier shows of options that can hold credentials in some of their fields, or change. */
const PARTLY_SHOWN: Readonly<Record<OptionsWith<"shown", "by value">, (record: SessionRecord) => unknown>> = {
  title: ({ title }) => title,
  agents: ({ spec: { agents } }) => agents && agentsOf(agents),
  mcpServers: ({ spec: { mcpServers } }) => mcpServers && mcpServersOf(mcpServers),
};

function partsShown(record: SessionRecord): JsonObject {
  const parts = Object.entries(PARTLY_SHOWN).map(([name, show]) => [name, show(record)] as const);
  return Object.fromEntries(parts.filter(([, value]) => value !== undefined));
}

/** What gives way first when a session does not fit. */
const EXPENDABLE = ["outputFormat", "agents", "systemPrompt", "prompt"];

/** Both tiers within `most` bytes. `truncated` says that texts of the sensitive tier are cut. */
export async function sensitiveView(
  record: SessionRecord,
  most: number,
  { principal }: ToolCall,
  { engine, mask }: ToolDeps,
): Promise<JsonObject> {
  const { id, spec, state } = record;
  const first = await engine.read(principal, id, 1, FIRST_EVENTS);
  const prompt = first.find((event) => event.type === "prompt.queued")?.data.text;
  const leftOut = leftOutOf(spec);
  const masked = mask({
    ...(prompt !== undefined && { prompt }),
    ...optionsShown(spec, "sensitive"),
    ...partsShown(record),
    ...(state.background.length > 0 && { background: state.background }),
    ...(state.closed?.message !== undefined && { closedMessage: state.closed.message }),
  });
  const known = { ...publicView(record), ...(leftOut.length > 0 && { leftOut }) };
  const { cut, value } = fit(masked, most - jsonBytes({ ...known, truncated: true }), EXPENDABLE);
  return { ...known, ...value, ...(cut && { truncated: true }) };
}

/** Nothing of note comes before the first prompt. */
const FIRST_EVENTS = 5;

type Servers = NonNullable<SessionOptions["mcpServers"]>;
type Agents = NonNullable<SessionOptions["agents"]>;

function mcpServersOf(servers: Servers): JsonObject {
  return Object.fromEntries(Object.entries(servers).map(([name, { type = "stdio" }]) => [name, { type }]));
}

function agentsOf(agents: Agents): JsonObject {
  const shown = Object.entries(agents).map(([name, { mcpServers, ...agent }]) => {
    const servers = mcpServers?.map((server) => (typeof server === "string" ? server : mcpServersOf(server)));
    return [name, { ...agent, ...(servers && { mcpServers: servers }) }] as const;
  });
  return Object.fromEntries(shown);
}

/** What no tier tells, by name, where the session has it: a token may stand in any of it. */
function leftOutOf(spec: SessionOptions): string[] {
  const { agents = {}, mcpServers = {} } = spec;
  const inline = Object.values(agents).flatMap((agent) => agent.mcpServers ?? []);
  const ofAgents = inline.filter((server) => typeof server !== "string");
  return [
    ...Object.keys(optionsShown(spec, "by name")),
    ...fieldsOf([mcpServers]).map((field) => `mcpServers.*.${field}`),
    ...fieldsOf(ofAgents).map((field) => `agents.*.mcpServers.*.${field}`),
  ];
}

function fieldsOf(servers: readonly Servers[]): string[] {
  const fields = servers.flatMap((each) => Object.values(each)).flatMap((server) => Object.keys(server));
  return [...new Set(fields)].filter((field) => field !== "type");
}

function requestOf({ requestId, kind, toolName, createdAt, expiresAt }: OpenRequest): JsonObject {
  return { requestId, type: kind, toolName, createdAt: isoTime(createdAt), expiresAt: isoTime(expiresAt) };
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}
