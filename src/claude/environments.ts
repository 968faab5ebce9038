import { createHmac } from "node:crypto";
import { CLAUDE_PATH, clientVariables, isOfTheServer } from "../domain/client-environment.ts";

/**
 * The environments that processes of sessions are started with: a record for each client that has another one. Records are in memory
 * only; the store has their ids.
 */

export type Variables = Readonly<Record<string, string>>;

/** The server's own record. */
const OWN = "";
/** Sessions whose record is kept when its client has left: those that have had to do with one last. */
const MAX_SESSIONS = 200;

interface Entry {
  readonly variables: Variables;
  /** Number of clients that have it. */
  connections: number;
}

interface EnvironmentsOptions {
  /** Told what may be in what is written from now on, in that of the session where one is named. */
  readonly learn?: (variables: Variables, sessionId?: string) => void;
  /** The server's own record is no client's: nothing that a client has started goes on with it. */
  readonly isApart?: boolean;
}

export class Environments {
  readonly #key: Buffer;
  readonly #own: Variables;
  readonly #learn: NonNullable<EnvironmentsOptions["learn"]>;
  readonly #isApart: boolean;
  readonly #entries = new Map<string, Entry>();
  /** Ids that each session has had to do with, the last one last. */
  readonly #held = new Map<string, ReadonlySet<string>>();
  /** Digests of what paid for the last process of each session. */
  readonly #payers = new Map<string, string>();
  readonly #awaiting = new Set<(id: string) => void>();

  /** `key` makes the ids: the same variables have the same one after a restart, and without the key no one can guess them from it. */
  constructor(
    key: Buffer,
    own: Readonly<Record<string, string | undefined>>,
    { isApart = false, learn = () => undefined }: EnvironmentsOptions = {},
  ) {
    this.#key = key;
    this.#own = definedOf(own);
    this.#learn = learn;
    this.#isApart = isApart;
  }

  /** The record of a client, without what says only where it was started, and without its settings. */
  open(variables: Readonly<Record<string, string | undefined>>): { readonly id: string; close(): void } {
    const all = Object.entries(clientVariables(variables, process.platform));
    const isSetting = (name: string) => isOfTheServer(name) && name !== CLAUDE_PATH;
    this.#learn(Object.fromEntries(all));
    const kept = Object.fromEntries(all.filter(([name]) => !isSetting(name)));
    const id = this.digest(kept);
    const entry = this.#put(id, kept);
    entry.connections += 1;
    for (const tell of this.#awaiting) tell(id);
    let isOpen = true;
    const close = () => {
      if (!isOpen) return;
      isOpen = false;
      entry.connections -= 1;
      this.#forget(id);
    };
    return { id, close };
  }

  /** Undefined where this server has it no more, or never had it. */
  get(id: string): Variables | undefined {
    return id === OWN ? this.#own : this.#entries.get(id)?.variables;
  }

  /** Told of the record of each client that comes. */
  onOpen(listener: (id: string) => void): void {
    this.#awaiting.add(listener);
  }

  /** The ids of all records that there are. */
  get ids(): string[] {
    return [OWN, ...this.#entries.keys()];
  }

  /** The session has to do with this record, and with the variables that are `added` to it. */
  hold(sessionId: string, id: string, added: Variables = {}): void {
    const variables = this.get(id);
    if (!variables) return;
    this.#learn({ ...(id !== OWN && variables), ...added }, sessionId);
    const former = this.#held.get(sessionId) ?? [];
    this.#held.delete(sessionId);
    this.#held.set(sessionId, new Set([...[...former].filter((each) => each !== id), id]));
    const [oldest] = this.#held.keys();
    if (this.#held.size > MAX_SESSIONS && oldest !== undefined) this.#release(oldest);
  }

  /**
   * The environment of a process that a former server has left: the record of its session, by an id of its own. `added` are the
   * variables that the session adds.
   */
  recovered(sessionId: string, variables: Variables, added: Variables = {}): string {
    const id = `recovered:${sessionId}`;
    this.#entries.delete(id);
    this.#put(id, variables);
    this.hold(sessionId, id, added);
    return id;
  }

  /** Notes who pays for the session, and tells whether that was another one before. Nothing of a credential is kept but a digest. */
  paysAnew(sessionId: string, credential: Variables): boolean {
    const digest = this.digest(credential);
    const before = this.#payers.get(sessionId);
    this.#payers.delete(sessionId);
    this.#payers.set(sessionId, digest);
    const [oldest] = this.#payers.keys();
    if (this.#payers.size > MAX_SESSIONS && oldest !== undefined) this.#payers.delete(oldest);
    return before !== undefined && before !== digest;
  }

  /** The record of a client that is connected, or comes within `ms`. */
  async find(fits: (variables: Variables) => boolean, ms: number): Promise<string | undefined> {
    const isFit = (id: string) => {
      const variables = this.get(id);
      const isConnected = id === OWN ? !this.#isApart : (this.#entries.get(id)?.connections ?? 0) > 0;
      return variables !== undefined && isConnected && fits(variables);
    };
    const found = this.ids.findLast(isFit);
    if (found !== undefined) return found;
    return new Promise((resolve) => {
      const finish = (id?: string) => {
        clearTimeout(timer);
        this.#awaiting.delete(tell);
        resolve(id);
      };
      const timer = setTimeout(finish, ms);
      // A server that ends meanwhile does not wait for it.
      timer.unref();
      const tell = (id: string) => {
        if (isFit(id)) finish(id);
      };
      this.#awaiting.add(tell);
    });
  }

  /** Equal for the same variables, and nothing of them can be told from it. */
  digest(variables: Variables): string {
    const entries = Object.entries(variables).toSorted(([one], [other]) => (one < other ? -1 : 1));
    return createHmac("sha256", this.#key).update(JSON.stringify(entries)).digest("hex").slice(0, 32);
  }

  #put(id: string, variables: Variables): Entry {
    const entry = this.#entries.get(id) ?? { variables, connections: 0 };
    this.#entries.set(id, entry);
    return entry;
  }

  #release(sessionId: string): void {
    const ids = this.#held.get(sessionId) ?? [];
    this.#held.delete(sessionId);
    for (const id of ids) this.#forget(id);
  }

  /** Nothing of an environment stays longer than it can be needed. */
  #forget(id: string): void {
    if ((this.#entries.get(id)?.connections ?? 0) > 0) return;
    for (const held of this.#held.values()) if (held.has(id)) return;
    this.#entries.delete(id);
  }
}

function definedOf(variables: Readonly<Record<string, string | undefined>>): Variables {
  const entries = Object.entries(variables);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}
