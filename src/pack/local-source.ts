import { readPayer } from "../claude/account.ts";
import { childEnvironment, configFolder, identify } from "../claude/child-environment.ts";
import { listConversation, readConversation } from "../claude/folder/conversation.ts";
import type { Identity } from "../domain/process.ts";
import { findProfile, profileGone, type Profiles } from "../domain/profile.ts";
import type { SessionBackend, SessionRecord } from "../engine/ports.ts";
import type { Manifest } from "./manifest.ts";
import type { PackSource } from "./pack-session.ts";

/** Packs sessions of the local user without a server: from the store and the files of this machine. */

type Environment = Readonly<Record<string, string>>;

export async function localSource(store: SessionBackend, record: SessionRecord, noFiles: boolean): Promise<PackSource> {
  const { id, spec, state } = record;
  const own = localEnvironment({}, {});
  const environment = state.identity ? inFolder(own, state.identity) : own;
  const of = (transcriptId: string) => ({ configFolder: configFolder(environment), transcriptId });
  return {
    record,
    readLog: async (from, limit) => store.log.read(id, from, limit),
    listConversation: async (transcriptId) => listConversation(of(transcriptId)),
    readConversation: (transcriptId, name, range) => readConversation(of(transcriptId), name, range),
    payer: state.identity && (await payerOf(environment, state.identity)),
    place: noFiles ? undefined : { cwd: spec.cwd, environment: own, wrapper: [], allowed: [] },
  };
}

/** Returns the environment of a Claude Code that this shell would start. Throws PERMISSION_DENIED without its profile. */
export function localEnvironment({ profile: name }: { readonly profile?: string }, profiles: Profiles): Environment {
  const profile = name === undefined ? undefined : findProfile(profiles, name);
  if (name !== undefined && !profile) throw profileGone(name);
  return childEnvironment(process.env, { depth: 0, profile });
}

/** Names the folder only if it is not the usual one, because the state file lies elsewhere then. */
function inFolder(environment: Environment, { configFolder: folder }: Identity): Environment {
  return configFolder(environment) === folder ? environment : { ...environment, CLAUDE_CONFIG_DIR: folder };
}

/** Names the payer; the account if it was recorded, or this shell has the same kind of payer. */
async function payerOf(environment: Environment, { paidBy, payer }: Identity): Promise<Manifest["payer"]> {
  if (payer) return { paidBy, payer };
  return identify(environment).paidBy === paidBy ? { paidBy, payer: await readPayer(environment) } : { paidBy };
}
