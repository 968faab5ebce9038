import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { FailureCategory, TurnOutcome } from "../../domain/turn.ts";
import { TOKEN_KINDS } from "../../domain/usage.ts";

/**
 * Lists all metrics. Label values are words of this server, of its settings or of the API, never input of clients, so that they
 * reveal nothing about sessions and their cardinality is bounded. docs/observability.md is generated from this list.
 */

const PREFIX = "claude_code_mcp_";

const TURN_S = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 14_400];
const WAIT_S = [0.1, 1, 5, 15, 30, 60, 120, 300, 600, 1800];
const REQUEST_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10, 30, 60, 300];

/** The `category` label of a turn that did not fail. */
export const NO_CATEGORY = "none";

export type Instruments = ReturnType<typeof instruments>;
export type ScrapedGauges = ReturnType<typeof scrapedGauges>;

export function instruments(registry: Registry) {
  const all = {
    ...eventMetrics(registry),
    ...webhookMetrics(registry),
    ...serverMetrics(registry),
    ...scrapedGauges(registry),
    ...httpMetrics(registry),
  };
  beginAtZero(all);
  return all;
}

/** Counted by event-counters.ts from the events that this server writes; sum them over the servers of a store. */
function eventMetrics(registry: Registry) {
  const make = makers(registry);
  return {
    turns: make.counter("turns_total", "Ended turns, by outcome and failure category.", ["outcome", "category"]),
    turnSeconds: make.histogram("turn_duration_seconds", "Duration of turns from start to end, in seconds.", TURN_S, [
      "outcome",
    ]),
    tokens: make.counter("tokens_total", "Tokens reported by Claude Code in its results, by kind.", ["kind"]),
    cost: make.counter("cost_usd_total", "Cost of turns in US dollars, as estimated by Claude Code."),
    waits: make.histogram(
      "permission_wait_seconds",
      "Time from a permission request or question to its answer in seconds, by kind, decision and source of the answer.",
      WAIT_S,
      ["kind", "decision", "by"],
    ),
    apiRetries: make.counter("api_retries_total", "Requests to the model's API that Claude Code retried."),
    exits: make.counter("claude_exits_total", "Ended Claude Code processes, by whether the exit was expected.", [
      "expected",
    ]),
  };
}

/** Counted by metrics.ts. */
function webhookMetrics(registry: Registry) {
  const make = makers(registry);
  return {
    deliveries: make.counter(
      "webhook_deliveries_total",
      "Webhook deliveries by outcome: delivered, failed, gone (410), obsolete (answered meanwhile).",
      ["outcome"],
    ),
  };
}

/** Set by metrics.ts. */
function serverMetrics(registry: Registry) {
  const make = makers(registry);
  return {
    build: make.gauge("build_info", "Always 1; the label `version` is the version of the server.", ["version"]),
    storeUp: make.gauge(
      "store_up",
      "1 if this scrape could read the store, else 0; the gauges of the store are then missing.",
    ),
  };
}

/** Gauges of store, processes and spares. gauges.ts sets them at each scrape. */
function scrapedGauges(registry: Registry) {
  const make = makers(registry);
  return {
    sessions: make.gauge("sessions", "Sessions in the store, by status, over all its servers.", ["status"]),
    openRequests: make.gauge(
      "permission_requests_open",
      "Open permission requests and questions, by kind, over all servers of the store.",
      ["kind"],
    ),
    waiting: make.gauge(
      "sessions_waiting",
      "Sessions whose turn waits, by kind: at a limit, for a client's environment, or for a slot; over all servers of the store.",
      ["kind"],
    ),
    queue: make.gauge("queue_length", "Sessions waiting for a slot, over all servers of the store."),
    processes: make.gauge("claude_processes", "Claude Code processes of this server's sessions, by phase.", ["phase"]),
    memory: make.gauge(
      "claude_resident_memory_bytes",
      "Resident memory of the processes of `claude_processes`, in bytes (Linux only).",
    ),
    cpu: make.gauge(
      "claude_cpu_seconds",
      "CPU time used by the processes of `claude_processes` and their ended children, in seconds (Linux only).",
    ),
    spares: make.gauge("spares", "Spare Claude Code processes that no session has claimed."),
    ...nodeGauges(registry),
    ...planGauges(registry),
  };
}

/** Nodes of a store that several machines share. All nodes report the same values. */
function nodeGauges(registry: Registry) {
  const make = makers(registry);
  return {
    nodeUp: make.gauge("node_up", "1 if the node of this name is alive, else 0, for the nodes of the last day.", [
      "node",
    ]),
    nodeDraining: make.gauge("node_draining", "1 if the node is being drained, else 0.", ["node"]),
    nodeSessions: make.gauge("node_sessions", "Sessions that the node owns.", ["node"]),
    nodeSlots: make.gauge("node_slots", "Maximum number of Claude Code processes of the node.", ["node"]),
  };
}

/** Windows of plans and budgets of the present day, from the ledger. Read by plan-gauges.ts. */
function planGauges(registry: Registry) {
  const make = makers(registry);
  const [account, budget] = [["account", "window"] as const, ["scope", "name"] as const];
  return {
    planUsed: make.gauge("plan_used_ratio", "Used share of a plan's window, 0 to 1; 0 after its reset.", account),
    planReset: make.gauge("plan_reset_timestamp_seconds", "End of a plan's window, in seconds since 1970.", account),
    planReported: make.gauge(
      "plan_reported_timestamp_seconds",
      "Time of the last report about a plan's window, in seconds since 1970.",
      account,
    ),
    budgetSpent: make.gauge("budget_spent_usd", "Spending today, in US dollars, as estimated by Claude Code.", budget),
    budgetUnknown: make.gauge(
      "budget_unknown_price_usd",
      "Part of `budget_spent_usd` for models whose price Claude Code does not know.",
      budget,
    ),
    budgetReserved: make.gauge("budget_reserved_usd", "Reservations of running turns, in US dollars.", budget),
    budgetLimit: make.gauge("budget_limit_usd", "Budget per day, in US dollars.", budget),
  };
}

/** Counted by metrics.ts. */
function httpMetrics(registry: Registry) {
  const make = makers(registry);
  return {
    requests: make.counter("http_requests_total", "Answered HTTP requests, by route, method and status class.", [
      "route",
      "method",
      "status",
    ]),
    requestSeconds: make.histogram(
      "http_request_duration_seconds",
      "Time from an HTTP request to the end of its response, in seconds; long polls and streams count for as long as they are open.",
      REQUEST_S,
      ["route", "method"],
    ),
    openHttp: make.gauge("http_requests_open", "HTTP requests in progress, by route: calls, long polls and streams.", [
      "route",
    ]),
    refusals: make.counter("http_refusals_total", "Refused HTTP requests, by reason.", ["reason"]),
    slowReaders: make.counter("http_slow_readers_total", "Connections closed because the client read too slowly."),
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

/** Initializes counters to 0: `rate()` over a missing series returns nothing. */
function beginAtZero({ deliveries, exits, refusals, tokens, turns }: Instruments): void {
  for (const outcome of TurnOutcome.options) {
    const categories = outcome === "failed" ? FailureCategory.options : [NO_CATEGORY];
    for (const category of categories) turns.inc({ outcome, category }, 0);
  }
  for (const kind of TOKEN_KINDS) tokens.inc({ kind }, 0);
  for (const expected of ["true", "false"]) exits.inc({ expected }, 0);
  for (const outcome of DELIVERIES) deliveries.inc({ outcome }, 0);
  for (const reason of REFUSALS) refusals.inc({ reason }, 0);
}

/** Outcomes of a webhook delivery. */
const DELIVERIES = ["delivered", "failed", "gone", "obsolete"] as const;
export type Delivery = (typeof DELIVERIES)[number];

/** Reasons to refuse a request. */
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
