import { join } from "node:path";
import type { AgentRuntime, ConversationPlace, Conversations, PlacedSession } from "../engine/ports.ts";
import type { GitContext } from "../security/git/read-only-git.ts";
import { configFolder } from "./child-environment.ts";
import { allowedPlaces, buildEnvironment, type ClaudeDependencies } from "./dependencies.ts";
import { listConversation, readConversation, type Conversation } from "./folder/conversation.ts";
import { writeConversation } from "./folder/conversation-writer.ts";
import { checkFolder } from "./preflight/session-paths.ts";
import { findClosedPaths } from "./restrictions.ts";
import { readWorkTree } from "./work-tree.ts";

/** Gives the engine the files of a session: its folder, its conversation, and both in one file. */
export function sessionFiles(config: ClaudeDependencies): Pick<AgentRuntime, "conversations" | "pack" | "workTree"> {
  return {
    conversations: conversationFiles(config),
    pack: async (...request) => pack(request, config),
    workTree: async (session) => readWorkTree(await gitPlace(session, config)),
  };
}

function conversationFiles(config: ClaudeDependencies): Conversations {
  const find = (place: ConversationPlace) => findConversation(place, config);
  return {
    list: async (place) => listConversation(find(place)),
    read: (place, ...what) => readConversation(find(place), ...what),
    write: async (place, files, { replaces = false } = {}) =>
      void (await writeConversation({ ...find(place), cwd: place.options.cwd, replaces }, files)),
  };
}

function findConversation(place: ConversationPlace, config: ClaudeDependencies): Conversation {
  return { configFolder: configFolder(buildEnvironment(config, place)), transcriptId: place.transcriptId };
}

/** Returns the session's folder for git. Refuses a folder that the session may not use. */
async function gitPlace(session: PlacedSession, config: ClaudeDependencies): Promise<GitContext> {
  const { own, all } = allowedPlaces(config, session);
  const environment = buildEnvironment(config, session);
  const closed = await findClosedPaths(session.options, environment, config);
  let { cwd } = session.options;
  for (const { allowDirs } of all) cwd = await checkFolder("cwd", cwd, allowDirs, closed);
  return { cwd, environment, wrapper: own.spawnWrapper, allowed: all.map(({ allowDirs }) => allowDirs) };
}

/** Folder below the state folder, which no session may read. */
const PACKS = "packs";

async function pack([place, request]: Parameters<AgentRuntime["pack"]>, config: ClaudeDependencies) {
  const { check, readLog, record } = request;
  const of = (transcriptId: string) => findConversation({ ...place, transcriptId }, config);
  const { packToFile } = await import("../pack/pack-to-file.ts");
  const source = {
    record,
    readLog,
    listConversation: async (id: string) => listConversation(of(id)),
    readConversation: (id: string, ...what: [name: string, range: { length?: number }]) =>
      readConversation(of(id), ...what),
    payer: record.state.identity,
    place: await gitPlace(place, config),
  };
  return packToFile(source, { folder: join(config.stateFolder, PACKS), check });
}
