import type { ShimRef } from "../../domain/process.ts";
import type { SessionState } from "../../domain/session.ts";
import { ENDED_SUFFIX, readEnded } from "../../shim/ended.ts";
import { isElsewhere } from "../supervise/machine.ts";
import { startTime } from "../supervise/tree.ts";
import type { ShimClient } from "./connection.ts";

/** Explains why no server can attach to a process of a dead owner. */

interface GoneProcess {
  readonly tag: string;
  readonly process: SessionState["process"];
  /** `undefined` for a server without shims. */
  readonly server: ShimClient | undefined;
}

/** Returns a sentence for people; `undefined` without a known reason. */
export async function explainGone({ process, server, tag }: GoneProcess): Promise<string | undefined> {
  if (process.phase === "none") return undefined;
  if (isElsewhere(process.host)) return "It ran on another machine, or before this machine was started again.";
  if (!process.shim) return undefined;
  const { daemon, sdk } = process.shim;
  const ended = await readEndReason(process.shim, tag);
  if (ended !== undefined) return ended;
  if (!(await isShimAlive(process.shim))) return "Its shim has died as well.";
  if (server?.daemon !== daemon || server.sdk === sdk) return undefined;
  return `It used Agent SDK ${sdk}, this server uses ${server.sdk}, and a turn goes on with the same version only.`;
}

/** Reads the shim's reason for ending a process. `id` is the process's name in the shim. */
export async function readEndReason({ address, pid, startedAt }: ShimRef, id: string): Promise<string | undefined> {
  const ended = await readEnded(`${address}${ENDED_SUFFIX}`);
  if (ended?.pid !== pid || ended.startedAt !== startedAt) return undefined;
  return ended.processes.find((each) => each.id === id)?.why;
}

export async function isShimAlive({ pid, startedAt }: Pick<ShimRef, "pid" | "startedAt">): Promise<boolean> {
  return (await startTime(pid)) === startedAt;
}
