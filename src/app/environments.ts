import { randomBytes } from "node:crypto";
import { EnvironmentRecords } from "../claude/environment-records.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import { withClaudePath } from "../domain/client-environment.ts";
import { createSessionMasks, type SessionMasks } from "../log/session-masks.ts";

/** Creates environment records of a server and its clients, and masks for secrets in them. */

export interface RecordSettings {
  /** Key of record ids: servers with an equal `environmentKey` give equal records equal ids. By default, random. */
  readonly environmentKey?: Buffer | undefined;
  /** True if the server's environment belongs to no client, so that sessions of a departed client do not continue in it. */
  readonly isApart?: boolean | undefined;
}

interface Settings extends RecordSettings {
  readonly config: { readonly claudePath?: string | undefined };
  /** Environment of the server, not of a client. */
  readonly environment: NodeJS.ProcessEnv;
  readonly approverSecrets?: ReadonlyMap<ApproverName, string> | undefined;
}

interface Records {
  readonly environments: EnvironmentRecords;
  readonly masker: SessionMasks;
}

/** Call before the first log line: `learn` masks the secrets of a record as soon as the record exists. */
export function createEnvironments(settings: Settings): Records {
  const { config, environment, environmentKey = randomBytes(32), isApart = false } = settings;
  const masker = createSessionMasks({ ...environment, ...secretsOf(settings) });
  const own = withClaudePath(environment, config.claudePath);
  const learn: SessionMasks["learn"] = (variables, sessionId) => masker.learn(variables, sessionId);
  return { masker, environments: new EnvironmentRecords(environmentKey, own, { isApart, learn }) };
}

/** Returns secrets as variables, because the masker recognizes secrets by variable names. */
function secretsOf({ approverSecrets = new Map() }: Settings): Record<string, string> {
  return Object.fromEntries([...approverSecrets].map(([name, secret]) => [`${name}_SECRET`.toUpperCase(), secret]));
}
