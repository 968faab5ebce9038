import { once } from "node:events";
import type { Place } from "../../../src/domain/place.ts";
import {
  FencedError,
  type Lease,
  type SessionBackend,
  type StoredTranscripts,
  type StoreMachines,
  type TranscriptManifest,
} from "../../../src/engine/ports.ts";

/** Copies of conversations in memory, fenced by the epochs of the claims that they have seen. */
export class MemoryTranscripts implements StoredTranscripts {
  readonly files = new Map<string, Buffer>();
  readonly manifests = new Map<string, TranscriptManifest>();
  /** Every write, as "PATH OFFSET+LENGTH". */
  readonly writes: string[] = [];
  readonly #epochs = new Map<string, number>();
  /** Called before each write and seal. */
  before: (what: "write" | "seal", path?: string) => Promise<void> | void = () => undefined;

  claimed({ epoch, sessionId }: Lease): void {
    this.#epochs.set(sessionId, Math.max(epoch, this.#epochs.get(sessionId) ?? 0));
  }

  #fence({ epoch, sessionId }: Lease): void {
    if (epoch < (this.#epochs.get(sessionId) ?? 0)) throw new FencedError(`session ${sessionId} has another owner`);
  }

  write = async (lease: Lease, path: string, offset: number, bytes: Uint8Array): Promise<void> => {
    await this.before("write", path);
    this.#fence(lease);
    const key = `${lease.sessionId}/${path}`;
    const kept = (this.files.get(key) ?? Buffer.alloc(0)).subarray(0, offset);
    if (kept.length < offset) throw new Error(`${path}: there are only ${String(kept.length)} bytes`);
    this.files.set(key, Buffer.concat([kept, bytes]));
    this.writes.push(`${path} ${String(offset)}+${String(bytes.length)}`);
  };

  seal = async (lease: Lease, manifest: TranscriptManifest): Promise<void> => {
    await this.before("seal");
    this.#fence(lease);
    const named = new Set(manifest.files.map(({ path }) => `${lease.sessionId}/${path}`));
    for (const key of this.files.keys())
      if (key.startsWith(`${lease.sessionId}/`) && !named.has(key)) this.files.delete(key);
    this.manifests.set(lease.sessionId, structuredClone(manifest));
  };

  manifest = async (sessionId: string): Promise<TranscriptManifest | undefined> =>
    Promise.resolve(this.manifests.get(sessionId));

  read = async (sessionId: string, path: string, offset: number, length: number): Promise<Uint8Array> =>
    Promise.resolve((this.files.get(`${sessionId}/${path}`) ?? Buffer.alloc(0)).subarray(offset, offset + length));
}

interface Shared {
  readonly name: string;
  readonly place: Place;
  readonly transcripts: MemoryTranscripts;
}

/** Replacements that make a store in memory one of several machines, for the node `name`, with all sessions at `place`. */
export const sharedBy =
  ({ name, place, transcripts }: Shared) =>
  ({ leases, rows }: SessionBackend) => {
    const claim: typeof leases.claim = async (id) => {
      const lease = await leases.claim(id);
      if (lease) transcripts.claimed(lease);
      return lease;
    };
    const get: typeof rows.get = async (id) => {
      const record = await rows.get(id);
      return record && { ...record, place };
    };
    return { machines: machinesOf({ name, place, transcripts }), leases: { claim }, rows: { get } };
  };

function machinesOf({ name, place, transcripts }: Shared): StoreMachines {
  const sharedFolders = "volume" in place ? [{ folder: "/", volume: place.volume }] : [];
  return {
    lease: { ttlMs: 30_000, renewMs: 5_000, endMs: 20_000 },
    self: { name, version: "1", folders: [], sharedFolders, labels: {}, maxLive: 9, principals: "" },
    nodes: async () => Promise.resolve([]),
    setDraining: async () => Promise.resolve(0),
    key: async () => Promise.resolve(Buffer.alloc(32)),
    offer: async () => Promise.resolve(),
    offers: untilAborted,
    transcripts,
  };
}

async function* untilAborted(signal: AbortSignal): AsyncGenerator<string> {
  if (!signal.aborted) await once(signal, "abort");
  yield* [];
}
