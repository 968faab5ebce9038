import { createHmac } from "node:crypto";
import { CLAUDE_PATH, clientVariables, isServerSetting } from "../domain/client-environment.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";

/**
 * Keeps the environments of sessions' processes: a record for each client with a different environment. Records stay in memory;
 * the store has their ids only.
 */

export type Variables = Readonly<Record<string, string>>;

/** Id of the server's own record. */
const OWN = "";
/**
 * Number of sessions whose records are kept after their clients have left, besides those at work. The least recently held
 * session is dropped first.
 */
const MAX_SESSIONS = 200;

interface Entry {
  readonly variables: Variables;
  /** Number of connections with this record. */
  connections: number;
}

interface EnvironmentsOptions {
  /** Called with variables that may appear in later output, of the session if `sessionId` is given. */
  readonly learn?: (variables: Variables, sessionId?: string) => void;
  /** True if the server's own record belongs to no client: then no client's session may continue with that record. */
  readonly isApart?: boolean;
}

export class EnvironmentRecords {
  readonly #key: Buffer;
  readonly #own: Variables;
  readonly #learn: NonNullable<EnvironmentsOptions["learn"]>;
  readonly #isApart: boolean;
  readonly #entries = new Map<string, Entry>();
  /** Record ids held for each session, the most recent last. */
  readonly #held = new Map<string, ReadonlySet<string>>();
  /** Digest of the credential of each session's last process. */
  readonly #payers = new Map<string, string>();
  readonly #awaiting = new Set<(id: string) => void>();
  #isAtWork: (sessionId: string) => boolean = () => false;

  /**
   * `key` makes the ids: equal variables get an equal id after a restart, and cannot be guessed from their id without `key`.
   */
  constructor(
    key: Buffer,
    own: Readonly<Record<string, string | undefined>>,
    { isApart = false, learn = () => undefined }: EnvironmentsOptions = {},
  ) {
    this.#key = key;
    this.#own = onlyDefined(own);
    this.#learn = learn;
    this.#isApart = isApart;
  }

  /** Adds the record of a client, without variables about the place of its start and without its settings. */
  open(variables: Readonly<Record<string, string | undefined>>): { readonly id: string; close(): void } {
    const all = Object.entries(clientVariables(variables, process.platform));
    const isSetting = (name: string) => isServerSetting(name) && name !== CLAUDE_PATH;
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

  /** `undefined` if this server has lost the record, or never had the record. */
  get(id: string): Variables | undefined {
    return id === OWN ? this.#own : this.#entries.get(id)?.variables;
  }

  /** Calls `listener` with the record id of each new client. */
  onOpen(listener: (id: string) => void): void {
    this.#awaiting.add(listener);
  }

  /** Ids of all existing records. */
  get ids(): string[] {
    return [OWN, ...this.#entries.keys()];
  }

  /** Keeps the record for the session, and masks its secrets and those in `added`, the session's own variables. */
  hold(sessionId: string, id: string, added: Variables = {}): void {
    const variables = this.get(id);
    if (!variables) return;
    this.#learn({ ...(id !== OWN && variables), ...added }, sessionId);
    const former = this.#held.get(sessionId) ?? [];
    this.#held.delete(sessionId);
    this.#held.set(sessionId, new Set([...[...former].filter((each) => each !== id), id]));
    for (const each of this.#held.keys()) {
      if (this.#held.size <= MAX_SESSIONS) return;
      if (each !== sessionId && !this.#isAtWork(each)) this.#release(each);
    }
  }

  /** Keeps the records of sessions for which `isAtWork` holds, such as one that waits for days at a limit of its plan. */
  keepWhile(isAtWork: (sessionId: string) => boolean): void {
    this.#isAtWork = isAtWork;
  }

  /**
   * Adds the environment of a process left by a former server, under a separate id. `added` are the session's own variables.
   */
  recovered(sessionId: string, variables: Variables, added: Variables = {}): string {
    const id = `recovered:${sessionId}`;
    this.#entries.delete(id);
    this.#put(id, variables);
    this.hold(sessionId, id, added);
    return id;
  }

  /** Notes the payer of the session, as a digest only. Returns true if the credential differs from the previous credential. */
  paysAnew(sessionId: string, credential: Variables): boolean {
    const digest = this.digest(credential);
    const before = this.#payers.get(sessionId);
    this.#payers.delete(sessionId);
    this.#payers.set(sessionId, digest);
    const [oldest] = this.#payers.keys();
    if (this.#payers.size > MAX_SESSIONS && oldest !== undefined) this.#payers.delete(oldest);
    return before !== undefined && before !== digest;
  }

  /**
   * Returns the record of a connected client, or of a client that connects within `ms`. Resolves with `undefined` once `signal`
   * aborts.
   */
  async find(fits: (variables: Variables) => boolean, ms: number, signal?: AbortSignal): Promise<string | undefined> {
    const isFit = (id: string) => {
      const variables = this.get(id);
      const isConnected = id === OWN ? !this.#isApart : (this.#entries.get(id)?.connections ?? 0) > 0;
      return variables !== undefined && isConnected && fits(variables);
    };
    const found = this.ids.findLast(isFit);
    if (found !== undefined || signal?.aborted) return found;
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer);
        this.#awaiting.delete(tell);
        signal?.removeEventListener("abort", stop);
      };
      const stop = () => {
        end();
        resolve(undefined);
      };
      const tell = (id: string) => {
        try {
          if (!isFit(id)) return;
          end();
          resolve(id);
        } catch (error) {
          // Fails this search only, not the client that has connected.
          end();
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      // Does not keep a server alive that is about to end.
      const timer = ms === Infinity ? undefined : setTimeout(stop, Math.min(ms, MAX_TIMER_MS)).unref();
      signal?.addEventListener("abort", stop);
      this.#awaiting.add(tell);
    });
  }

  /** Returns equal digests for equal variables; a digest reveals no variable. */
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

  /** Deletes a record without connections and sessions, so that no environment stays longer than needed. */
  #forget(id: string): void {
    if ((this.#entries.get(id)?.connections ?? 0) > 0) return;
    for (const held of this.#held.values()) if (held.has(id)) return;
    this.#entries.delete(id);
  }
}

function onlyDefined(variables: Readonly<Record<string, string | undefined>>): Variables {
  const entries = Object.entries(variables);
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
}
