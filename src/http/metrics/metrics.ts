import { collectDefaultMetrics, Registry } from "prom-client";
import type { Append, Logger } from "../../engine/ports.ts";
import { instruments, REFUSALS, type Delivery, type Refusal } from "./instruments.ts";
import { EventCounters } from "./event-counters.ts";
import { clearGauges, readGauges, type GaugeSources } from "./gauges.ts";

/**
 * Metrics for the operator's Prometheus. Session events are counted when written to the log, gauges are read from the store at
 * each scrape, and the HTTP middleware counts requests. Sessions never wait for metrics.
 */

export interface Metrics {
  /** For `withObserver`: counts an event once durable. Never throws. */
  onAppended(sessionId: string, change: Append): void;
  /** Counts the start of a request. The returned function must be called when the response was sent or the client has left. */
  began(path: string, method: string): (status: number) => void;
  refused(reason: Refusal): void;
  slowReaderCut(): void;
  /** Counts the outcome of a webhook delivery. */
  delivery(outcome: Delivery): void;
  /** Returns the text format of Prometheus. Resolves even if the store cannot be read: then `claude_code_mcp_store_up` is 0. */
  text(): Promise<string>;
  readonly contentType: string;
}

export interface MetricsOptions {
  readonly version: string;
  /** Returns `undefined` until an engine has started: then the gauges of the store are missing. */
  readonly gaugeSources: () => GaugeSources | undefined;
  readonly log: Pick<Logger, "warn">;
}

/** Minimum interval between reads of the store, ms. Concurrent and frequent scrapes share a read. */
const FRESH_MS = 1_000;

export function createMetrics({ log, version, gaugeSources }: MetricsOptions): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const all = instruments(registry);
  all.build.set({ version }, 1);
  const counts = new EventCounters(all);
  const look = async (): Promise<void> => {
    const source = gaugeSources();
    if (!source) {
      clearGauges(all);
      all.storeUp.remove();
      return;
    }
    try {
      await readGauges(source, all);
      all.storeUp.set(1);
    } catch (error) {
      clearGauges(all);
      all.storeUp.set(0);
      log.warn("the store could not be read for the metrics", { error: String(error) });
    }
  };
  const lookAtMostEverySecond = atMostEvery(FRESH_MS, look);
  return {
    contentType: registry.contentType,
    onAppended(sessionId, change) {
      try {
        counts.add(sessionId, change);
      } catch (error) {
        log.warn("an event could not be counted", { error: String(error) });
      }
    },
    began(path, verb) {
      const began = performance.now();
      const [route, method] = [routeOf(path), knownOrOther(METHODS, verb)];
      all.openHttp.inc({ route });
      return (status) => {
        all.openHttp.dec({ route });
        all.requests.inc({ route, method, status: classOf(status) });
        all.requestSeconds.observe({ route, method }, (performance.now() - began) / 1000);
      };
    },
    refused: (reason) => all.refusals.inc({ reason: knownOrOther(REFUSALS, reason) }),
    slowReaderCut: () => all.slowReaders.inc(),
    delivery: (outcome) => all.deliveries.inc({ outcome }),
    async text() {
      await lookAtMostEverySecond();
      return registry.metrics();
    },
  };
}

/** All other paths share one label. */
const ROUTES = ["/mcp", "/metrics", "/healthz", "/readyz", "/requests"];
const METHODS = ["GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"];

/** Cuts the ids of session and request off. */
function routeOf(path: string): string {
  return knownOrOther(ROUTES, path.startsWith("/requests/") ? "/requests" : path);
}

/** Never use client input as a label value: its cardinality is unbounded. */
function knownOrOther(words: readonly string[], word: string): string {
  return words.includes(word) ? word : "other";
}

function classOf(status: number): string {
  return status >= 100 && status < 600 ? `${String(Math.floor(status / 100))}xx` : "other";
}

/** Memoizes a scrape: concurrent and quickly repeated scrapes share one result. */
function atMostEvery(ms: number, work: () => Promise<void>): () => Promise<void> {
  let last: { readonly at: number; readonly done: Promise<void> } | undefined;
  return async () => {
    const now = performance.now();
    if (!last || now - last.at >= ms) last = { at: now, done: work() };
    return last.done;
  };
}
