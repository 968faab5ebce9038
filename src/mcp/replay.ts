import { randomUUID } from "node:crypto";
import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";
import { JsonText } from "../domain/json.ts";

/**
 * What was sent to clients of the 2025 era, for those whose connection broke: they come back with the id of the last
 * message they have seen. Kept in memory, the oldest forgotten first; what a session has in its log is never lost by that.
 */

interface Kept {
  readonly session: string;
  readonly stream: string;
  readonly id: string;
  /** As text: what the objects that it stands for take in memory cannot be counted. */
  readonly message: JsonText<JSONRPCMessage>;
}

/** What one takes beside its text: its ids, its place in the map. Of 20,000 each took 340 to 530. */
const OVERHEAD_BYTES = 400;

export class Replay {
  readonly #most: number;
  /** Differs from that of the server before, whose sessions go on here. */
  readonly #name = randomUUID().slice(0, 8);
  /** In the order in which they were sent. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;
  #count = 0;

  /** `most`: bytes of memory over all sessions, or what the last message takes alone. */
  constructor(most: number) {
    this.#most = most;
  }

  /** The part of one protocol session: an id of another finds nothing in it. */
  of(session: string): EventStore {
    const known = (id: string): Kept | undefined => {
      const kept = this.#kept.get(id);
      return kept?.session === session ? kept : undefined;
    };
    return {
      storeEvent: async (stream, message) => Promise.resolve(this.#keep(session, stream, message)),
      getStreamIdForEventId: async (id) => Promise.resolve(known(id)?.stream),
      replayEventsAfter: async (lastId, { send }) => {
        const last = known(lastId);
        if (!last) throw new Error(`message ${lastId} is not kept any more`);
        for (const { id, message } of this.#after(last)) await send(id, message.read());
        return last.stream;
      },
    };
  }

  /** Tells whether the id is of a message of this server, kept or not. */
  hasNamed(id: string): boolean {
    return id.startsWith(`${this.#name}:`);
  }

  forget(session: string): void {
    for (const kept of this.#kept.values()) if (kept.session === session) this.#drop(kept);
  }

  #keep(session: string, stream: string, message: JSONRPCMessage): string {
    this.#count += 1;
    const id = `${this.#name}:${String(this.#count)}`;
    const kept = { session, stream, id, message: new JsonText(message) };
    this.#kept.set(id, kept);
    this.#bytes += sizeOf(kept);
    for (const oldest of this.#kept.values()) {
      if (this.#bytes <= this.#most || oldest === kept) break;
      this.#drop(oldest);
    }
    return id;
  }

  #drop(kept: Kept): void {
    this.#kept.delete(kept.id);
    this.#bytes -= sizeOf(kept);
  }

  #after(last: Kept): Kept[] {
    const all = [...this.#kept.values()];
    return all
      .slice(all.indexOf(last) + 1)
      .filter(({ stream, session }) => stream === last.stream && session === last.session);
  }
}

/** Texts with letters of other scripts take twice their length: which they are is not looked for. */
function sizeOf({ message }: Kept): number {
  return message.length + OVERHEAD_BYTES;
}
