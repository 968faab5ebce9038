import type { Running } from "./engine.ts";
import { processLimitsOf } from "./engine-limits.ts";
import type { ShimReport } from "../claude/shim/shims.ts";
import { labelsOf, nodeName } from "../config/nodes.ts";
import { principalsDigest } from "../config/principals.ts";
import type { Config } from "../config/schema.ts";
import type { DaemonStatus } from "../daemon/wire.ts";
import type { SharedFolder } from "../domain/place.ts";
import type { NodeFacts, SessionRecord } from "../engine/ports.ts";

/** Describes this server: facts for the other machines of the store, and a report for its operator. */

interface NodeSettings {
  readonly config: Config;
  readonly info: { readonly version: string };
  /** Shared folders whose markers were read. */
  readonly sharedFolders?: readonly SharedFolder[] | undefined;
}

/** Returns what the other machines of the store learn about this server. */
export function nodeFacts({ config, info: { version }, sharedFolders = [] }: NodeSettings): NodeFacts {
  return {
    name: nodeName(config),
    version,
    folders: config.allowDirs,
    sharedFolders,
    labels: labelsOf(config),
    maxLive: processLimitsOf(config).maxLive,
    principals: principalsDigest(config),
  };
}

export interface NodeReport extends Pick<DaemonStatus, "nodeId" | "processes" | "turns"> {
  /** Shims of the processes. `fallback` is the reason for having none although configured. */
  readonly shim: { readonly fallback: string | undefined; readonly shims: readonly ShimReport[] };
}

/** Reports processes, turns and shims of this node. */
export async function nodeReport({ shims, spares, store }: Running): Promise<NodeReport> {
  const own = (await store.leases.atWork()).filter(({ owner }) => owner?.nodeId === store.nodeId);
  const running = own.filter(({ state: { process } }) => process.phase !== "none" && process.waiting !== true);
  const turns = own.filter(({ state }) => state.turn);
  const waitOf = ({ spec, state: { waiting } }: SessionRecord) =>
    waiting && spec.persistSession !== false && { waits: { kind: waiting.kind, until: waiting.until } };
  return {
    nodeId: store.nodeId,
    processes: running.length + spares.available,
    turns: turns.map((each) => ({ sessionId: each.id, title: each.title ?? each.spec.title ?? "", ...waitOf(each) })),
    shim: { fallback: shims?.fallback, shims: (await shims?.report()) ?? [] },
  };
}
