import { availableParallelism, totalmem } from "node:os";
import { parseApprovals } from "../config/approvals/approvals-flag.ts";
import { callerApprovesOf, rulesOf } from "../config/approvals/settings.ts";
import { constants } from "../config/constants.ts";
import type { Config } from "../config/schema.ts";
import { findBudget } from "../config/budgets.ts";
import { profilesOf } from "../config/profiles.ts";
import type { FolderVerification } from "../config/verify.ts";
import { findProfile } from "../domain/profile.ts";
import { type Verify, verifyOf } from "../domain/verification.ts";
import type { EngineOptions } from "../engine/engine-node.ts";
import type { UsePolicy } from "../engine/policy/policy.ts";
import type { SessionRecord } from "../engine/ports.ts";
import type { ProcessLimits } from "../engine/process-limiter.ts";
import { findRealPath, isInside } from "../security/paths.ts";
import type { Connections } from "./connections.ts";

/** Derives limits and defaults from settings: turns, requests, accounts, money, verification, unattended work, processes. */

/** `home` replaces a leading ~ in rules. */
export function limitsOf(config: Config, home: string): EngineOptions["limits"] {
  const { approverTimeoutMs, approvers, callerMs } = parseApprovals(config.approvals);
  return {
    approvalChain: approvers,
    approverTimeoutMs,
    rules: { ...rulesOf(config), home },
    callerApproves: callerApprovesOf(config),
    requestDeliveredMs: callerMs,
    requestMaxMs: config.permissionMaxMs,
    requestUnseenMs: config.permissionMaxMs,
    turnMaxMs: config.turnMaxMs,
    inactivityMs: constants().inactivityMs,
    idleProcessMs: config.idleProcessMs,
    stopGraceMs: STOP_GRACE_MS,
    unattended: { requests: config.unattended, maxUsd: config.unattendedMaxUsd },
  };
}

/** Returns the limits of a session on the use of accounts and on money, by its principal and its profile. */
export function useOf(config: Config, { principal, spec }: Pick<SessionRecord, "principal" | "spec">): UsePolicy {
  const { limitWaitMaxMs: waitMaxMs, onLimit, planReserve: reserve } = config;
  const { profile: name = "" } = spec;
  const profile = findProfile(profilesOf(config)(principal), name);
  const own = findBudget(config, { scope: "principal", name: principal });
  const ofProfile = profile && findBudget(config, { scope: "profile", name });
  return {
    onLimit,
    waitMaxMs,
    marginMs: constants().limitMarginMs,
    reserve: profile?.planReserve ?? reserve,
    budgets: [own, ofProfile].filter((budget) => budget !== undefined),
  };
}

/** Returns the operator's verification of the deepest folder that contains `cwd`, by real paths, because links lead elsewhere. */
export async function defaultVerification(
  folders: readonly FolderVerification[],
  cwd: string,
): Promise<Verify | undefined> {
  if (folders.length === 0) return undefined;
  const place = await findRealPath(cwd);
  if (place === undefined) return undefined;
  const real = await Promise.all(folders.map(async (each) => ({ each, path: await findRealPath(each.folder) })));
  const around = real.flatMap(({ each, path }) =>
    path !== undefined && isInside(place, path) ? [{ each, path }] : [],
  );
  const [deepest] = around.toSorted((a, b) => b.path.length - a.path.length);
  if (!deepest) return undefined;
  const { folder: _, ...verify } = deepest.each;
  return verifyOf(verify);
}

export function unattendedOf(connections: Pick<Connections, "onReach" | "reach">): EngineOptions["unattended"] {
  const { unattendedAfterMs: afterMs, unattendedMaxMs: maxMs } = constants();
  return {
    afterMs,
    maxMs,
    reach: (sessionId) => connections.reach(sessionId),
    onReach: (listener) => connections.onReach(listener),
  };
}

export function processLimitsOf({ maxLive = maxLiveByMemory() }: Config): ProcessLimits {
  const maxStarting = Math.max(2, availableParallelism());
  return { maxLive, maxStarting, maxBackground: Math.floor(maxLive * constants().maxBackgroundShare) };
}

/** Memory used by a working Claude Code, bytes. */
const PROCESS_BYTES = 110_000_000;

/** Leaves half of `totalmem()` to the rest of the machine. */
function maxLiveByMemory(): number {
  return Math.max(4, Math.floor(totalmem() / 2 / PROCESS_BYTES));
}

/**
 * Wait after an interrupt, ms; then Claude Code counts as hung. An interrupt takes 250 ms at most, 1,500 ms with a running
 * shell.
 */
const STOP_GRACE_MS = 10_000;
