import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { FailureCategory, TurnOutcome } from "../../domain/turn.ts";
import { TOKEN_KINDS } from "../../domain/usage.ts";

/**
 * All metrics in one list. The values of labels are a fixed set: they name no user, folder or subject, so they reveal no work and
 * their number does not grow with the input of clients. docs/observability.md is generated from this.
 */

const PREFIX = "claude_code_mcp_";

const TURN_S = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400];
const WAIT_S = [0.1, 1, 5, 15, 30, 60, 120, 300, 600, 1800];
const REQUEST_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10, 30, 60, 300];

/** Of a turn that did not fail. */
export const NO_CATEGORY = "none";

export type Instruments = ReturnType<typeof instruments>;

export function instruments(registry: Registry) {
  const all = { ...ofTheLog(registry), ...ofTheMoment(registry), ...ofHttp(registry) };
  beginAtZero(all);
  return all;
}

/** Counted from the events that this server has written: those of several servers add up. */
function ofTheLog(registry: Registry) {
  const make = makers(registry);
  return {
    turns: make.counter("turns_total", "Turns that ended, by outcome and, where they failed, by category.", [
      "outcome",
      "category",
    ]),
    turnSeconds: make.histogram("turn_duration_seconds", "From the start of a turn to its end.", TURN_S, ["outcome"]),
    tokens: make.counter("tokens_total", "Tokens that Claude Code reported in its results.", ["kind"]),
    cost: make.counter("cost_usd_total", "What the turns cost in US dollars, as Claude Code reckons it."),
    waits: make.histogram(
      "permission_wait_seconds",
      "From a permission request or a question to its answer, by decision and by whom.",
      WAIT_S,
      ["kind", "decision", "by"],
    ),
    apiRetries: make.counter("api_retries_total", "Requests to the model's API that Claude Code had to repeat."),
    deliveries: make.counter(
      "webhook_deliveries_total",
      "What the webhook was to be told, by what became of it: delivered, failed, gone (410), dropped, obsolete (answered meanwhile).",
      ["outcome"],
    ),
    exits: make.counter("claude_exits_total", "Claude Codes that ended, and whether the exit was expected.", [
      "expected",
    ]),
  };
}

/** Read when it is asked for. */
function ofTheMoment(registry: Registry) {
  const make = makers(registry);
  return {
    build: make.gauge("build_info", "Always 1; the label is the version of the server.", ["version"]),
    storeUp: make.gauge(
      "store_up",
      "1 when the store could be read for this answer; else the gauges of it are missing.",
    ),
    sessions: make.gauge("sessions", "Sessions in the store by status, of all servers that use it.", ["status"]),
    openRequests: make.gauge(
      "permission_requests_open",
      "Permission requests and questions that wait for an answer, in all servers that use the store.",
      ["kind"],
    ),
    queue: make.gauge("queue_length", "Sessions that wait for a slot, in all servers that use the store."),
    processes: make.gauge("claude_processes", "Claude Codes of this server that a session has, by phase.", ["phase"]),
    memory: make.gauge("claude_resident_memory_bytes", "Resident memory of these processes (Linux)."),
    cpu: make.gauge(
      "claude_cpu_seconds",
      "CPU time that these processes and their ended children have used so far (Linux).",
    ),
    spares: make.gauge("spares", "Claude Codes that were started ahead and that no session has yet."),
  };
}

function ofHttp(registry: Registry) {
  const make = makers(registry);
  return {
    requests: make.counter("http_requests_total", "HTTP requests that were answered, by class of status.", [
      "route",
      "method",
      "status",
    ]),
    requestSeconds: make.histogram(
      "http_request_duration_seconds",
      "From an HTTP request to the end of its answer; a call that waits and a stream take as long as they are open.",
      REQUEST_S,
      ["route", "method"],
    ),
    openHttp: make.gauge("http_requests_open", "HTTP requests being answered: calls, waits and streams.", ["route"]),
    refusals: make.counter("http_refusals_total", "HTTP requests that were not let in, by reason.", ["reason"]),
    slowReaders: make.counter("http_slow_readers_total", "Clients that were cut off because they read too slowly."),
  };
}

function makers(registry: Registry) {
  const about = <T extends string>(name: string, help: string, labelNames: readonly T[]) => {
    return { name: PREFIX + name, help, labelNames: [...labelNames], registers: [registry] };
  };
  return {
    counter: <T extends string = never>(name: string, help: string, labels: readonly T[] = []) =>
      new Counter(about(name, help, labels)),
    gauge: <T extends string = never>(name: string, help: string, labels: readonly T[] = []) =>
      new Gauge(about(name, help, labels)),
    histogram: <T extends string = never>(name: string, help: string, buckets: number[], labels: readonly T[] = []) =>
      new Histogram({ ...about(name, help, labels), buckets }),
  };
}

/** A rate over what has never happened is nothing at all; over a zero it is zero. */
function beginAtZero({
  deliveries,
  exits,
  refusals,
  tokens,
  turns,
}: ReturnType<typeof ofTheLog> & ReturnType<typeof ofHttp>): void {
  for (const outcome of TurnOutcome.options) {
    const categories = outcome === "failed" ? FailureCategory.options : [NO_CATEGORY];
    for (const category of categories) turns.inc({ outcome, category }, 0);
  }
  for (const kind of TOKEN_KINDS) tokens.inc({ kind }, 0);
  for (const expected of ["true", "false"]) exits.inc({ expected }, 0);
  for (const outcome of DELIVERIES) deliveries.inc({ outcome }, 0);
  for (const reason of REFUSALS) refusals.inc({ reason }, 0);
}

/** What becomes of a delivery of the webhook. */
const DELIVERIES = ["delivered", "failed", "gone", "dropped", "obsolete"] as const;
export type Delivery = (typeof DELIVERIES)[number];

/** Why a request is not let in. */
export const REFUSALS = [
  "host",
  "origin",
  "media_type",
  "unauthenticated",
  "scope",
  "rate",
  "open_requests",
  "body_size",
] as const;
export type Refusal = (typeof REFUSALS)[number];
