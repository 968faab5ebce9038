import { setTimeout as sleep } from "node:timers/promises";
import type { App, NodeReport } from "../../app/app.ts";
import { constants } from "../../config/constants.ts";
import type { DeathRecord } from "../../daemon/deaths.ts";

/** What a daemon says of itself, but for its connections. */

const startedAt = new Date(Date.now() - performance.now()).toISOString();

interface About {
  readonly deaths: Pick<DeathRecord, "last">;
  readonly isDraining: boolean;
  readonly log: string | undefined;
  readonly userFile: string;
  readonly version: string;
}

export async function statusOf(app: App, { deaths, isDraining, log, userFile, version }: About) {
  const state = isDraining ? ("draining" as const) : ("ready" as const);
  const setting = constants().shim ? ("auto" as const) : ("off" as const);
  const { node: nodeVersion } = process.versions;
  // Where no session is at work there may be no store yet: npm installs its driver, or cannot.
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
    lastDeath: deaths.last,
    shim: { setting, ...shim },
  };
}

/** Well below the time in which a daemon has to answer, ms. */
const REPORT_MS = 2_000;

async function reportSoon(app: App): Promise<NodeReport> {
  const nothing: NodeReport = { nodeId: "", processes: 0, turns: [], shim: { fallback: undefined, shims: [] } };
  return Promise.race([app.report().catch(() => nothing), sleep(REPORT_MS, nothing, { ref: false })]);
}
