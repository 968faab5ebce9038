import { randomBytes } from "node:crypto";
import { Environments } from "../claude/environments.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import { withClaudePath } from "../domain/client-environment.ts";
import { createSessionMasks, type SessionMasks } from "../log/session-masks.ts";

/** The environments of a server and of its clients, and what is masked because of them. */

export interface RecordSettings {
  /** Servers with the same key give equal records the same id; without one ids are good for this server alone. */
  readonly environmentKey?: Buffer | undefined;
  /** The environment of this server is no client's: sessions of a client that has left do not go on in it. */
  readonly isApart?: boolean | undefined;
}

interface Settings extends RecordSettings {
  readonly config: { readonly claudePath?: string | undefined };
  /** Environment of the server itself. */
  readonly environment: NodeJS.ProcessEnv;
  readonly approverSecrets?: ReadonlyMap<ApproverName, string> | undefined;
}

interface Records {
  readonly environments: Environments;
  readonly masker: SessionMasks;
}

/** Made before anything is logged: what is secret in a record is masked as soon as there is one. */
export function recordsOf(settings: Settings): Records {
  const { config, environment, environmentKey = randomBytes(32), isApart = false } = settings;
  const masker = createSessionMasks({ ...environment, ...secretsOf(settings) });
  const own = withClaudePath(environment, config.claudePath);
  const learn: SessionMasks["learn"] = (variables, sessionId) => masker.learn(variables, sessionId);
  return { masker, environments: new Environments(environmentKey, own, { isApart, learn }) };
}

/** As variables, by whose names the masker knows what is secret. */
function secretsOf({ approverSecrets = new Map() }: Settings): Record<string, string> {
  return Object.fromEntries([...approverSecrets].map(([name, secret]) => [`${name}_SECRET`.toUpperCase(), secret]));
}
