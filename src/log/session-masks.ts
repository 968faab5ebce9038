import { knownOf, type KnownSecrets, type Masker, maskerOf, secretValues } from "./mask.ts";

/**
 * What is masked where. A session's events are masked by what is secret of the environments that it has had to do with: what another
 * client keeps secret is an ordinary word there, and its mask would tell that it is a secret. The log is masked by all of them.
 */
export interface SessionMasks extends Masker {
  /** What is secret of these variables is masked from now on: in the log, and in the session's events where one is named. */
  learn(variables: Variables, sessionId?: string): void;
  /** Of the session's events. Masks by all that is known as long as nothing was learned for the session. */
  ofSession(sessionId: string): Masker;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** Values in the mask of the log; the oldest make way. */
const MAX_VALUES = 2_000;
/** Sessions with a mask of their own. Any other one is masked by all that is known. */
const MAX_SESSIONS = 1_000;

/** `own` is the environment of the server, which is masked everywhere. */
export function createSessionMasks(own: Variables): SessionMasks {
  const ownValues = secretValues(own);
  const all = new Secrets(ownValues);
  const sessions = new Map<string, Secrets>();
  return {
    ...maskerOf(() => all.known),
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
    ofSession: (sessionId) => maskerOf(() => (sessions.get(sessionId) ?? all).known),
  };
}

class Secrets {
  readonly #own: readonly string[];
  /** In the order in which they were learned last. */
  readonly #learned = new Set<string>();
  /** Made when it is asked for. */
  #known: KnownSecrets | undefined;

  constructor(own: readonly string[]) {
    this.#own = own;
  }

  get known(): KnownSecrets {
    this.#known ??= knownOf([...this.#own, ...this.#learned]);
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
