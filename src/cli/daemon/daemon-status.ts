import { setTimeout as sleep } from "node:timers/promises";
import type { App, NodeReport } from "../../app/app.ts";
import { constants } from "../../config/constants.ts";
import type { RunningFile } from "../../daemon/running-file.ts";

/** Builds the status of a daemon, connections excepted. */

const startedAt = new Date(Date.now() - performance.now()).toISOString();

interface StatusParts {
  readonly deaths: Pick<RunningFile, "lastDeath">;
  readonly isDraining: boolean;
  readonly log: string | undefined;
  readonly userFile: string;
  readonly version: string;
}

export async function readStatus(app: App, { deaths, isDraining, log, userFile, version }: StatusParts) {
  const state = isDraining ? ("draining" as const) : ("ready" as const);
  const setting = constants().shim ? ("auto" as const) : ("off" as const);
  const { node: nodeVersion } = process.versions;
  // Without a session at work the store may be missing: npm may still install its driver, or fail to.
  const { shim, ...report } = await (app.atWork() > 0 ? app.report() : reportSoon(app));
  return {
    pid: process.pid,
    startedAt,
    version,
    nodeVersion,
    state,
    sessions: app.atWork(),
    ...report,
    userFile,
    log,
    lastDeath: deaths.lastDeath,
    shim: { setting, ...shim },
  };
}

/** Time limit of the report, ms; well below that for a daemon's answer. */
const REPORT_MS = 2_000;

async function reportSoon(app: App): Promise<NodeReport> {
  const nothing: NodeReport = { nodeId: "", processes: 0, turns: [], shim: { fallback: undefined, shims: [] } };
  return Promise.race([app.report().catch(() => nothing), sleep(REPORT_MS, nothing, { ref: false })]);
}
