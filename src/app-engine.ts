import { availableParallelism, homedir, totalmem } from "node:os";
import { claudeRuntime } from "./claude/runtime.ts";
import { ladderOf } from "./config/approvals/ladder.ts";
import { callerApprovesOf, rulesOf } from "./config/approvals/settings.ts";
import { confinements } from "./config/confinement.ts";
import type { Config } from "./config/schema.ts";
import type { Places } from "./engine/admission.ts";
import type { Engine } from "./engine/api.ts";
import { systemClock } from "./engine/clock.ts";
import { createEngine, type EngineOptions } from "./engine/engine.ts";
import type { JsonObject } from "./domain/json.ts";
import type { Logger, SessionBackend, Spares } from "./engine/ports.ts";
import type { Masker } from "./log/mask.ts";
import { requestEntry } from "./log/requests.ts";
import { observed, type OnAppended } from "./store/observed.ts";
import type { Outcome } from "./notify/outbox.ts";
import type { Notifier } from "./notify/notifier.ts";
import type { Audit } from "./tools/audit.ts";
import type { BypassSwitch } from "./tools/define.ts";

/** What runs sessions, put together; loaded by the first tool call. */

export interface EngineSettings {
  readonly config: Config;
  /** The environment of the server. */
  readonly environment: NodeJS.ProcessEnv;
  /** How deep this server is nested in sessions of servers like it. */
  readonly depth: number;
  /** How this server was started: [command, ...args], in the spellings that a configuration may use. */
  readonly ownCommands: readonly (readonly [string, ...string[]])[];
  /** What the webhook's requests are signed with, in base64; undefined where there is none. */
  readonly notifySecret?: string | undefined;
  readonly info: { readonly version: string };
}

/** An engine and what it runs on. */
export interface Running {
  readonly engine: Engine;
  readonly store: SessionBackend;
  readonly spares: Pick<Spares, "parked">;
  /** Undefined where there is no webhook. */
  readonly notifier: Pick<Notifier, "close"> | undefined;
}

/** What there is where clients come over HTTP. */
export interface OverHttp {
  /** Told of each change of a session that this server has written. */
  readonly onAppended: OnAppended;
  /** Where this server is reached; * stands for any text. */
  readonly ownUrls: readonly string[];
  readonly publicUrl: string;
  /** Counts what became of a delivery of the webhook. */
  readonly countDelivery: (outcome: Outcome) => void;
}

interface Means {
  readonly backend: SessionBackend;
  readonly http: OverHttp | undefined;
  readonly audit: Audit | undefined;
  readonly log: Logger;
  readonly masker: Masker;
  readonly bypass: BypassSwitch;
  readonly callersAnswer: boolean;
}

export async function startEngine(settings: EngineSettings, means: Means): Promise<Running> {
  const { bypass, http, log, masker } = means;
  const { config, depth, environment, ownCommands } = settings;
  const confine = confinements(config);
  const notifier = await notifierOf(settings, means, () => engine);
  const store = followedBy(means.backend, [http, notifier, auditorOf(means)]);
  const runtime = claudeRuntime({
    environment,
    depth,
    mayNest: depth + 1 < config.maxDepth,
    ownCommands,
    ownUrls: http?.ownUrls ?? [],
    confine,
    rules: rulesOf(config),
    claudePath: config.claudePath,
    forceReaper: config.reaper === "always",
    spares: config.spares,
    spareIdleMs: config.idleProcessMs,
    mask: (text) => masker.text(text),
    log,
  });
  const engine = createEngine({
    backend: store,
    runtime,
    clock: systemClock,
    log,
    mask: (event) => masker.event(event),
    initMs: INIT_MS,
    limits: limitsOf(config),
    retention: {
      maxAgeMs: config.retentionDays * DAY_MS,
      maxBytes: config.retentionMegabytes * 1_000_000,
      everyMs: config.cleanupIntervalMs,
    },
    places: placesOf(config),
    gate: {
      allowsBypass: () => bypass.isAllowed(),
      callersAnswer: means.callersAnswer,
      callerApproves: callerApprovesOf(config),
      depth,
      maxDepth: config.maxDepth,
      grantsOperatorOptions: (principal) => confine(principal)?.operatorOptions === true,
    },
  });
  return { engine, store, spares: runtime.spares, notifier };
}

/** Every step of a request stands in the audit log too. Its session's principal is looked up, so it may come a moment later. */
function auditorOf({ audit, backend, log }: Means): { readonly onAppended: OnAppended } | undefined {
  if (!audit) return undefined;
  const write = async (sessionId: string, entries: readonly JsonObject[]) => {
    const principal = (await backend.principalOf(sessionId)) ?? "";
    for (const entry of entries) audit({ principal, tool: "request", sessionId, outcome: "ok", ...entry });
  };
  return {
    onAppended: (sessionId, { events }) => {
      const entries = events.map((event) => requestEntry(event)).filter((entry) => entry !== undefined);
      if (entries.length === 0) return;
      write(sessionId, entries).catch((error: unknown) => log.warn("audit", { sessionId, error: String(error) }));
    },
  };
}

function followedBy(
  backend: SessionBackend,
  followers: readonly ({ readonly onAppended: OnAppended } | undefined)[],
): SessionBackend {
  const all = followers.flatMap((follower) => follower ?? []);
  if (all.length === 0) return backend;
  return observed(backend, (sessionId, change) => {
    for (const each of all) each.onAppended(sessionId, change);
  });
}

async function notifierOf(
  { config, info, notifySecret: secret }: EngineSettings,
  { backend: store, http, ...means }: Means,
  engine: () => Engine,
): Promise<Notifier | undefined> {
  if (secret === undefined) return undefined;
  const { startNotifier } = await import("./app-notify.ts");
  const { countDelivery: count, publicUrl } = http ?? {};
  return startNotifier({ config, secret, version: info.version, store, engine, publicUrl, count, ...means });
}

function limitsOf(config: Config): EngineOptions["limits"] {
  const { rungMs, rungs } = ladderOf(config.approvals);
  return {
    ladder: rungs,
    rungMs,
    rules: { ...rulesOf(config), home: homedir() },
    callerApproves: callerApprovesOf(config),
    askDeliveredMs: config.permissionTimeoutMs,
    askMaxMs: config.permissionMaxMs,
    askUnseenMs: config.permissionMaxMs,
    turnMaxMs: config.turnMaxMs,
    inactivityMs: config.inactivityMs,
    idleProcessMs: config.idleProcessMs,
    stopGraceMs: STOP_GRACE_MS,
  };
}

function placesOf({ maxBackground, maxLive = livesInMemory() }: Config): Places {
  const maxStarting = Math.max(2, availableParallelism());
  return { maxLive, maxStarting, maxBackground: maxBackground ?? Math.floor(maxLive / 2) };
}

/** What a Claude Code at work takes of the memory, bytes. */
const LIFE_BYTES = 110_000_000;

/** Half of the memory is for others. */
function livesInMemory(): number {
  return Math.max(4, Math.floor(totalmem() / 2 / LIFE_BYTES));
}

const DAY_MS = 86_400_000;

/** Default of sessionInitTimeoutMs, ms. */
const INIT_MS = 10_000;

/** An interrupt takes 250 ms at most, 1,500 with a shell running: who has not obeyed by then does not listen. */
const STOP_GRACE_MS = 10_000;
