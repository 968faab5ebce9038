import { basename } from "node:path";
import { z } from "zod";
import type { JsonObject } from "../../../domain/json.ts";
import type { SessionOptions } from "../../../domain/options.ts";
import { type OptionsWith, type OptionTraits, traitsOf } from "../../../domain/options/traits.ts";
import type { OpenRequest } from "../../../domain/permission.ts";
import { optionsOf, statusOf } from "../../../domain/session.ts";
import { waitingField } from "../../../domain/standstill.ts";
import { UNREADABLE } from "../../../domain/unreadable.ts";
import { ownerName } from "../../../engine/nodes.ts";
import type { SessionRecord } from "../../../engine/ports.ts";
import type { ToolCall, ToolDeps } from "../../define.ts";
import { roundUsd } from "../../../domain/usage.ts";
import { beginningWithin, cutText, fit, jsonBytes, oneLine } from "../../../view/size.ts";

/**
 * Fields of a session in answers: the public tier for every caller of the principal, and the sensitive tier if the operator
 * allows sensitive details.
 */

/** Maximum size of an answer, bytes of JSON. */
export const ANSWER_BYTES = 32_768;

/** Returns the public tier. No field may reveal the subject of a session. */
export function publicView(record: SessionRecord): JsonObject {
  const { id, spec, state, createdAt, unreadable, updatedAt } = record;
  const { requests, background, closed, lastOutcome, process, queue, reported, totals, turn } = state;
  const options = optionsOf(spec, state);
  const requested = { permissionMode: "default", ...optionsShown(options, "public") };
  const model = reported.model ?? options.model;
  return {
    sessionId: id,
    status: statusOf(state),
    ...waitingField(state),
    ...(unreadable && { errorSubtype: UNREADABLE }),
    createdAt: isoTime(createdAt),
    lastActiveAt: isoTime(updatedAt),
    ...(turn && { turnStartedAt: isoTime(turn.startedAt) }),
    ...(model !== undefined && { model }),
    permissionMode: reported.permissionMode ?? requested.permissionMode,
    requested,
    reported: { ...reported },
    totalTurns: totals.turns,
    totalCostUsd: roundUsd(totals.costUsd),
    ...(lastOutcome && { lastOutcome }),
    pending: requests.length,
    ...(requests.length > 0 && { requests: requests.map(requestOf) }),
    queued: queue.length,
    ...(queue.some(({ held }) => held) && { held: queue.filter(({ held }) => held).length }),
    ...(background.length > 0 && { background: background.map((task) => ({ id: task.id, type: task.type })) }),
    ...(closed && { closed: { reason: closed.reason, by: cutText(closed.by, 100), at: isoTime(closed.at) } }),
    lastEventId: state.lastEventId,
    processStarts: state.processCount,
    processLive: process.phase === "live" || (process.phase === "starting" && process.waiting !== true),
    ...placeFields(record),
  };
}

/** Returns the nodes that may run the session, and the node that runs it at present. Only on a store of several machines. */
function placeFields(record: Pick<SessionRecord, "owner" | "place">): JsonObject {
  const { place } = record;
  const node = ownerName(record);
  return { ...(place && { place }), ...(node !== undefined && { node }) };
}

/** Maximum size of a session in a list by default, bytes of JSON with its comma. `get` returns more. */
const LISTED_BYTES = 300;
/** Maximum length of a model name, and length kept free for title and folder if the model name is long, bytes. */
const [MODEL_BYTES, NAMES_BYTES] = [64, 32];
/**
 * Minimum and maximum length of a shortened title or folder, bytes: less is useless, and more is not needed for recognition.
 */
const [LEAST_NAME, MAX_NAME] = [8, 40];

/** Texts by which a person recognizes the session. `folder` is the last part of `cwd`. */
export const SessionNames = z.object({ title: z.string().exactOptional(), folder: z.string().exactOptional() });
export type SessionNames = z.infer<typeof SessionNames>;

export function sessionNames({ spec, title = spec.title }: SessionRecord): SessionNames {
  const folder = basename(spec.cwd);
  return { ...(title !== undefined && { title }), ...(folder !== "" && { folder }) };
}

/** Returns the fields that distinguish sessions, then as much of `names` as fits into `LISTED_BYTES`. */
export function listedView(record: SessionRecord, names: SessionNames): JsonObject {
  const { id: sessionId, spec, state, createdAt, updatedAt } = record;
  const { model: asked, permissionMode: mode = "default" } = optionsOf(spec, state);
  const { model = asked, permissionMode = mode } = state.reported;
  const status = statusOf(state);
  const times = { createdAt: inSeconds(createdAt), lastActiveAt: inSeconds(updatedAt) };
  const counts = { totalTurns: state.totals.turns, totalCostUsd: roundUsd(state.totals.costUsd) };
  const whole = { sessionId, status, ...times, permissionMode, ...counts };
  const forNames = Math.min(NAMES_BYTES, jsonBytes(namesWithin(names, LISTED_BYTES)) - 1);
  const forModel = Math.min(MODEL_BYTES, LISTED_BYTES - jsonBytes({ ...whole, model: "" }) - forNames);
  const shortModel = model !== undefined && modelWithin(model, forModel);
  const requested = {
    // Skipped for an alias contained in the full name of the model.
    ...(asked !== undefined && model?.includes(asked) === false && { model: modelWithin(asked, forModel) }),
    ...(mode !== permissionMode && { permissionMode: mode }),
  };
  const more = [shortModel !== false && { model: shortModel }, ...unusualFields(record, requested)];
  const fields = more.reduce<JsonObject>((all, part) => {
    const next = { ...all, ...part };
    return jsonBytes(next) < LISTED_BYTES ? next : all;
  }, whole);
  return { sessionId, status, ...namesWithin(names, LISTED_BYTES - 1 - jsonBytes(fields)), ...fields };
}

/** Fields absent from most sessions, most important first. */
function unusualFields(record: SessionRecord, requested: JsonObject): readonly (JsonObject | false)[] {
  const { state, unreadable } = record;
  const { lastOutcome, queue } = state;
  const node = ownerName(record);
  const { waiting } = waitingField(state);
  const status = statusOf(state);
  const isUnremarkable = lastOutcome === null || lastOutcome === "done" || (status !== "error" && status !== "idle");
  const held = queue.filter((prompt) => prompt.held).length;
  return [
    unreadable !== undefined && { errorSubtype: UNREADABLE },
    // Without the time if only the kind fits.
    waiting !== undefined && { waiting: { kind: waiting.kind } },
    waiting !== undefined && {
      waiting: { ...waiting, ...(waiting.until !== undefined && { until: toSecond(waiting.until) }) },
    },
    Object.keys(requested).length > 0 && { requested },
    !isUnremarkable && { lastOutcome },
    queue.length > 0 && { queued: queue.length },
    held > 0 && { held },
    node !== undefined && { node },
  ];
}

/** Shortens title and folder to `most` bytes together. The shorter text stays whole if possible. */
function namesWithin({ folder = "", title = "" }: SessionNames, most: number): JsonObject {
  const names = [
    { name: "title", text: title },
    { name: "folder", text: folder },
  ];
  let left = most;
  const shown: JsonObject = {};
  for (const [index, { name, text }] of names.toSorted((a, b) => a.text.length - b.text.length).entries()) {
    const around = jsonBytes({ [name]: "" }) - 1;
    const short = textWithin(text, Math.min(MAX_NAME, Math.floor(left / (names.length - index)) - around));
    if (short === "") continue;
    shown[name] = short;
    left -= around + jsonBytes(short) - 2;
  }
  return { ...(shown["title"] !== undefined && { title: shown["title"] }), ...shown };
}

/** Shortens a long name, such as an ARN, to its last part, because that part names the model. */
function modelWithin(model: string, most: number): string {
  return textWithin(jsonBytes(model) - 2 <= most ? model : model.slice(model.lastIndexOf("/") + 1), most);
}

/** Returns `text` on a single line, cut to `most` bytes inside a JSON string; "" if fewer than `LEAST_NAME` bytes remain. */
function textWithin(text: string, most: number): string {
  const line = oneLine(text, LISTED_BYTES);
  if (jsonBytes(line) - 2 <= most) return line;
  return most < LEAST_NAME ? "" : `${beginningWithin(line, most - Buffer.byteLength("…")).trimEnd()}…`;
}

function inSeconds(at: number): string {
  return toSecond(isoTime(at));
}

function toSecond(time: string): string {
  return time.replace(/\.\d+Z$/, "Z");
}

/** Presents answers remembered until the end of the session: each `rule`, and the maximum `risk` allowed by the rule. */
export function rememberedOf({ state: { remembered = [] } }: SessionRecord): JsonObject {
  if (remembered.length === 0) return {};
  return { remembered: remembered.map(({ at, by, level, rule }) => ({ rule, risk: level, by, at: isoTime(at) })) };
}

type Shown = OptionTraits["shown"];

function optionsShown(options: SessionOptions, shown: Shown): JsonObject {
  return Object.fromEntries(Object.entries(options).filter(([name]) => traitsOf(name).shown === shown));
}

/** Parts to show of options with values that may change or may contain credentials. */
const PARTLY_SHOWN: Readonly<Record<OptionsWith<"shown", "by value">, (record: SessionRecord) => unknown>> = {
  title: ({ title }) => title,
  agents: ({ spec: { agents } }) => agents && agentsOf(agents),
  mcpServers: ({ spec: { mcpServers } }) => mcpServers && mcpServersOf(mcpServers),
};

function partsShown(record: SessionRecord): JsonObject {
  const parts = Object.entries(PARTLY_SHOWN).map(([name, show]) => [name, show(record)] as const);
  return Object.fromEntries(parts.filter(([, value]) => value !== undefined));
}

/** Fields to cut first if a session is too large. */
const EXPENDABLE = ["outputFormat", "agents", "systemPrompt", "prompt"];

/** Returns both tiers within `most` bytes. Sets `truncated` if texts of the sensitive tier are cut. */
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

/** Number of events to read; the first prompt is among them. */
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

/** Returns the names of fields that are never shown, if the session has them: any may contain a token. */
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
