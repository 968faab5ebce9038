import { constants } from "node:fs";
import { basename, dirname, join } from "node:path";
import { invalidArgument } from "../../domain/error.ts";
import type { ConversationFile, ConversationListing, FileRange } from "../../engine/ports.ts";
import { lstat, otherwise, readdir, realpath } from "../../security/files/limited.ts";
import { close, openPlainFile, readParts } from "../../security/files/plain-file.ts";
import { CONVERSATION_ID } from "./find.ts";
import { findTranscript } from "./transcript.ts";

/**
 * Files of a conversation in a configuration folder, under portable names:
 *
 * - `ID.jsonl`: transcript, in `projects/PROJECT`
 * - `ID/subagents/...`: transcripts of subagents, beside the transcript
 * - `ID/tool-results/...`: results that were too long for the transcript, beside it
 * - `file-history/ID/...`: checkpoints of files, in the configuration folder
 *
 * All else is left out: further folders beside the transcript (scripts of workflows, tasks in the cloud), the project's memory,
 * plans, task lists, shell snapshots, output of background tasks. Claude Code resumes without them.
 */

/** A conversation of a configuration folder. */
export interface Conversation {
  readonly configFolder: string;
  readonly transcriptId: string;
}

/** Folders beside the transcript whose files are kept. */
const KEPT_FOLDERS: readonly string[] = ["subagents", "tool-results"];
export const CHECKPOINTS = "file-history";

/** Maximum number of files, and depth of folders below `ID`. */
const MAX_FILES = 20_000;
const MAX_DEPTH = 6;
/** Windows has no such flag. */
const NO_LINK = process.platform === "win32" ? 0 : constants.O_NOFOLLOW;
/** Excludes hidden names, and characters that some file system refuses or reads as a separator. */
const PART = /^(?!\.)[^/\\:*?"<>|\p{Cc}]{1,255}(?<![. ])$/u;

/** Returns the portable name in parts. Throws INVALID_ARGUMENT unless a file of the conversation can have the name. */
export function partsOf(name: string, transcriptId: string): string[] {
  const parts = name.split("/");
  const [first = "", second = ""] = parts;
  const isKept =
    name === `${transcriptId}.jsonl` ||
    (parts.length === 3 && first === CHECKPOINTS && second === transcriptId) ||
    (parts.length > 2 && parts.length <= MAX_DEPTH && first === transcriptId && KEPT_FOLDERS.includes(second));
  if (isKept && CONVERSATION_ID.test(transcriptId) && parts.every((part) => PART.test(part))) return parts;
  throw invalidArgument("name", `${JSON.stringify(name)} is no file of the conversation ${transcriptId}.`);
}

/** Returns the folder in which a file lies: the project's for all but checkpoints. */
export function folderOf(parts: readonly string[], { configFolder }: Conversation, project: string): string {
  return parts[0] === CHECKPOINTS ? configFolder : project;
}

/** Lists the files, those of a transcript without messages excluded. Never follows a symbolic link. */
export async function listConversation(conversation: Conversation): Promise<ConversationListing> {
  const found = await findProject(conversation);
  if (found === undefined) return { files: [], leftOut: [] };
  const { transcriptId } = conversation;
  const walk: Walk = { files: [], leftOut: [] };
  await add(walk, found, `${transcriptId}.jsonl`);
  for (const { name } of await readdir(join(found, transcriptId)).catch(otherwise([]))) {
    const path = `${transcriptId}/${name}`;
    if (KEPT_FOLDERS.includes(name)) await addFolder(walk, found, path);
    else walk.leftOut.push(path);
  }
  await addFolder(walk, conversation.configFolder, `${CHECKPOINTS}/${transcriptId}`);
  return walk;
}

interface Walk {
  readonly files: ConversationFile[];
  readonly leftOut: string[];
}

async function add({ files, leftOut }: Walk, root: string, name: string): Promise<void> {
  const found = await lstat(join(root, name)).catch(otherwise(undefined));
  if (found?.isFile() === true && files.length < MAX_FILES)
    files.push({ name, size: found.size, changedAt: found.mtimeMs });
  else if (found !== undefined) leftOut.push(name);
}

async function addFolder(walk: Walk, root: string, name: string): Promise<void> {
  const found = await lstat(join(root, name)).catch(otherwise(undefined));
  if (found === undefined) return;
  if (!found.isDirectory() || name.split("/").length >= MAX_DEPTH) {
    walk.leftOut.push(name);
    return;
  }
  const entries = await readdir(join(root, name));
  for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = `${name}/${entry.name}`;
    if (!PART.test(entry.name)) walk.leftOut.push(path);
    else if (entry.isDirectory() && !name.startsWith(CHECKPOINTS)) await addFolder(walk, root, path);
    else await add(walk, root, path);
  }
}

/** Returns the project folder with the transcript; `undefined` if there is none with a message. */
async function findProject({ configFolder, transcriptId }: Conversation): Promise<string | undefined> {
  if (!CONVERSATION_ID.test(transcriptId)) return undefined;
  const transcript = await findTranscript(transcriptId, configFolder);
  return transcript === undefined ? undefined : dirname(transcript);
}

/** Reads a file of the conversation. Throws for other files, and for a symbolic link at or above the file. */
export async function* readConversation(
  conversation: Conversation,
  name: string,
  { length, offset }: FileRange = {},
): AsyncGenerator<Buffer> {
  const parts = partsOf(name, conversation.transcriptId);
  const project = await findProject(conversation);
  if (project === undefined) throw invalidArgument("name", `there is no conversation ${conversation.transcriptId}.`);
  const root = await realpath(folderOf(parts, conversation, project));
  const file = join(root, ...parts);
  // A program of the session could replace a folder by a link to any other.
  if ((await realpath(dirname(file))) !== dirname(file))
    throw invalidArgument("name", `${dirname(file)} is reached through a symbolic link.`);
  const handle = await openPlainFile(file, NO_LINK);
  try {
    yield* readParts(basename(file), handle, length, offset);
  } finally {
    await close(file, handle);
  }
}
