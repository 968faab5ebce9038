import type { Answer } from "../clients/connection.ts";

/** Removes from a log all differences between runs, and fields of Claude Code's messages that nothing here reads. */

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Times, and fields that only measure or describe a single run. */
const MEASURED = new Set([
  "durationApiMs",
  "durationMs",
  "duration_api_ms",
  "duration_ms",
  "end_time",
  "estimated_tokens",
  "first_content_frame_ms",
  "request_sent_wall_ms",
  "retry_delay_ms",
  "thinking_duration_ms",
  "time_to_request_ms",
  "timestamp",
  "ttft_ms",
  "ttft_stream_ms",
]);

/** Unused fields of Claude Code's messages; they differ between versions. */
const UNREAD = new Set([
  "cacheCreationEphemeral1hInputTokens",
  "cacheCreationEphemeral5mInputTokens",
  "canonicalModel",
  "container",
  "costBasis",
  "diagnostics",
  "fallback_credit",
  "fast_mode_disabled_reason",
  "fast_mode_state",
  "first_request_cache_read_input_tokens",
  "first_request_input_tokens",
  "model_usage_since_last_result",
  "provider",
  "safety_stops",
  "stop_details",
  "subagent_stats",
  "thinkingTokens",
  "thinking_display",
]);

/** Fields kept of the first message of a turn. */
const INIT = ["cwd", "mcp_servers", "model", "permissionMode", "subtype", "tools", "type"];

const UUID = String.raw`[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}`;
const IDS: readonly [RegExp, string][] = [
  [new RegExp(UUID, "g"), "uuid"],
  [/\b(?:msg|req|toolu)_\w+/g, "id"],
  [/\b0[\da-z]{8}-[\da-f]{8}\b/g, "run"],
  [/\ba[\da-f]{16}\b/g, "agent"],
  [/\bb[\da-z]{8}\b/g, "shell"],
  [/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "time"],
];

export function comparable(
  events: readonly Pick<Answer["events"][number], "data" | "type">[],
  places: Readonly<Record<string, string>>,
): Json[] {
  const seen = new Map<string, string>();
  const named = (text: string): string => {
    let told = text;
    for (const [name, place] of Object.entries(places)) {
      told = told.replaceAll(place, `<${name}>`).replaceAll(place.replaceAll(/[^a-zA-Z0-9]/g, "-"), `<${name}>`);
    }
    told = told.replaceAll(/(?<=<config>\/plans\/)[\w-]+/g, "<plan>").replaceAll(/\d\.\d s\b/g, "<delay>");
    for (const [pattern, kind] of IDS) {
      told = told.replaceAll(pattern, (id) => {
        // Numbered in order of appearance, so that equality of ids is compared as well.
        if (!seen.has(id)) seen.set(id, `<${kind} ${String(seen.size)}>`);
        return seen.get(id) ?? "";
      });
    }
    return told;
  };
  const told = events.map(({ data, type }) => ({ type, data: plain(data as Json, named) }));
  return told.filter(({ data }) => !isPassing(data));
}

/** Returns `log` without order, and with ids reduced to their kind. */
export function unordered(log: Json[]): string[] {
  return log.map((event) => JSON.stringify(event).replaceAll(/<(\w+) \d+>/g, "<$1>")).toSorted();
}

/** True for events reported at any time: progress of a subagent, and a session's wait for a process. */
function isPassing(data: Json): boolean {
  return isRecord(data) && (data["subtype"] === "task_progress" || data["notice"] === "waiting");
}

function plain(value: Json, named: (text: string) => string): Json {
  if (typeof value === "string") return named(value);
  if (typeof value === "number") return Math.round(value * 1e9) / 1e9;
  if (Array.isArray(value)) return value.map((each) => plain(each, named));
  if (!isRecord(value)) return value;
  const isInit = value["type"] === "system" && value["subtype"] === "init";
  const kept = Object.entries(value).filter(([key]) =>
    isInit ? INIT.includes(key) : !MEASURED.has(key) && !UNREAD.has(key),
  );
  const told = kept.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, plain(each, named)] as const);
  return Object.fromEntries(
    told.map(([key, each]) => [key, isInit && Array.isArray(each) ? each.toSorted(byText) : each]),
  );
}

function byText(a: Json, b: Json): number {
  return JSON.stringify(a).localeCompare(JSON.stringify(b));
}

function isRecord(value: Json): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
