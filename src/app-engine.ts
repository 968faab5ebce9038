import { availableParallelism, homedir, totalmem } from "node:os";
import { claudeRuntime } from "./claude/runtime.ts";
import { callerApprovesOf, rulesOf } from "./config/approvals.ts";
import { confinements } from "./config/confinement.ts";
import type { Config } from "./config/schema.ts";
import type { Places } from "./engine/admission.ts";
import type { Engine } from "./engine/api.ts";
import { systemClock } from "./engine/clock.ts";
import { createEngine, type EngineOptions } from "./engine/engine.ts";
import type { Logger, SessionBackend, Spares } from "./engine/ports.ts";
import type { Masker } from "./log/mask.ts";
import { observed, type OnAppended } from "./store/observed.ts";
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
}

/** Without such a tool only a call that waits denies what is asked; a turn that Claude Code begins by itself has none, ms. */
const UNATTENDED_MS = 5_000;

/** An engine and what it runs on. */
export interface Running {
  readonly engine: Engine;
  readonly store: SessionBackend;
  readonly spares: Pick<Spares, "parked">;
}

interface Means {
  readonly backend: SessionBackend;
  /** Told of each change of a session that this server has written; undefined where nobody counts. */
  readonly onAppended: OnAppended | undefined;
  /** Where this server is reached over HTTP; * stands for any text. */
  readonly ownUrls: readonly string[];
  readonly log: Logger;
  readonly masker: Masker;
  readonly bypass: BypassSwitch;
  readonly callersAnswer: boolean;
}

export function startEngine(settings: EngineSettings, means: Means): Running {
  const { backend, bypass, log, masker, onAppended, ownUrls } = means;
  const { config, depth, environment, ownCommands } = settings;
  const confine = confinements(config);
  const store = onAppended ? observed(backend, onAppended) : backend;
  const runtime = claudeRuntime({
    environment,
    depth,
    mayNest: depth + 1 < config.maxDepth,
    ownCommands,
    ownUrls,
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
    limits: limitsOf(config, means),
    retention: {
      maxAgeMs: config.retentionDays * DAY_MS,
      maxBytes: config.retentionMegabytes * 1_000_000,
      everyMs: config.cleanupIntervalMs,
    },
    places: placesOf(config),
    gate: {
      allowsBypass: () => bypass.isAllowed(),
      callerApproves: callerApprovesOf(config),
      depth,
      maxDepth: config.maxDepth,
      grantsOperatorOptions: (principal) => confine(principal)?.operatorOptions === true,
    },
  });
  return { engine, store, spares: runtime.spares };
}

function limitsOf(config: Config, { callersAnswer }: Means): EngineOptions["limits"] {
  return {
    rules: { ...rulesOf(config), home: homedir() },
    callerApproves: callerApprovesOf(config),
    askDeliveredMs: config.permissionTimeoutMs,
    askMaxMs: config.permissionMaxMs,
    askUnseenMs: callersAnswer ? config.permissionMaxMs : Math.min(UNATTENDED_MS, config.permissionMaxMs),
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
