import { compileSecrets, type KnownSecrets, type Masker, createDynamicMasker, secretValues } from "./mask.ts";

/**
 * Chooses the secrets that are masked. A session's events are masked by the secrets of the environments used in the session: a
 * secret of another client is an ordinary word there, and its mask would reveal a secret. The server's log lines are masked by
 * all known secrets.
 */
export interface SessionMasks extends Masker {
  /** Masks the secrets of `variables` from now on: in the server's log lines, and in the events of `sessionId` if given. */
  learn(variables: Variables, sessionId?: string): void;
  /** Returns the masker for the session's events. Uses all known secrets until `learn` has been called for the session. */
  ofSession(sessionId: string): Masker;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Maximum number of values in one mask; the oldest are dropped. */
const MAX_VALUES = 2_000;
/** Maximum number of sessions with a mask of their own. Others are masked by all known secrets. */
const MAX_SESSIONS = 1_000;

/** `own` is the environment of the server, which is masked everywhere. */
export function createSessionMasks(own: Variables): SessionMasks {
  const ownValues = secretValues(own);
  const all = new Secrets(ownValues);
  const sessions = new Map<string, Secrets>();
  return {
    ...createDynamicMasker(() => all.known),
    learn: (variables, sessionId) => {
      const values = secretValues(variables);
      all.add(values);
      if (sessionId === undefined) return;
      const secrets = sessions.get(sessionId) ?? new Secrets(ownValues);
      secrets.add(values);
      sessions.delete(sessionId);
      sessions.set(sessionId, secrets);
      const [oldest] = sessions.keys();
      if (sessions.size > MAX_SESSIONS && oldest !== undefined) sessions.delete(oldest);
    },
    ofSession: (sessionId) => createDynamicMasker(() => (sessions.get(sessionId) ?? all).known),
  };
}

class Secrets {
  readonly #own: readonly string[];
  /** Least recently learned first. */
  readonly #learned = new Set<string>();
  /** Built on first use; `undefined` after a change. */
  #known: KnownSecrets | undefined;

  constructor(own: readonly string[]) {
    this.#own = own;
  }

  get known(): KnownSecrets {
    this.#known ??= compileSecrets([...this.#own, ...this.#learned]);
    return this.#known;
  }

  add(values: readonly string[]): void {
    for (const value of values) {
      if (!this.#learned.delete(value)) this.#known = undefined;
      this.#learned.add(value);
    }
    const surplus = this.#learned.size - MAX_VALUES;
    for (const value of [...this.#learned].slice(0, Math.max(surplus, 0))) this.#learned.delete(value);
  }
}
