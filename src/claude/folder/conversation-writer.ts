import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { invalidArgument } from "../../domain/error.ts";
import type { WrittenFile } from "../../engine/ports.ts";
import { conversationsFolder } from "../../security/claude-own-files.ts";
import { exists, lstat, otherwise, realpath } from "../../security/files/limited.ts";
import { CHECKPOINTS, folderOf, partsOf, type Conversation } from "./conversation.ts";
import { filesFor } from "./transcript.ts";

/** Writes the files of a conversation into a configuration folder, as Claude Code would have done there. */

interface Target extends Conversation {
  /** Folder in which the conversation goes on. */
  readonly cwd: string;
  /** True to replace the files of the same conversation. */
  readonly replaces: boolean;
}

interface Draft {
  readonly draft: string;
  readonly file: string;
}

/**
 * Writes all files under temporary names, then renames them, the transcript last, because Claude Code finds a conversation by its
 * transcript. Deletes the drafts after a fault. Returns the transcript's folder.
 */
export async function writeConversation(
  target: Target,
  files: AsyncIterable<WrittenFile> | Iterable<WrittenFile>,
): Promise<string> {
  const { transcriptId } = target;
  const project = await findProject(target);
  const drafts = new Map<string, Draft>();
  try {
    for await (const { name, parts } of files) {
      const path = partsOf(name, transcriptId);
      const root = folderOf(path, target, project);
      const file = join(await createFolder(target.configFolder, join(root, ...path.slice(0, -1))), path.at(-1) ?? "");
      const draft = join(dirname(file), `.${randomUUID()}.tmp`);
      if (drafts.has(name)) throw invalidArgument("name", `${name} comes twice.`);
      drafts.set(name, { draft, file });
      await writeDraft(draft, parts);
    }
    const transcript = drafts.get(`${transcriptId}.jsonl`);
    if (transcript === undefined) throw invalidArgument("files", `the transcript ${transcriptId}.jsonl is missing.`);
    const rest = [...drafts.values()].filter((each) => each !== transcript);
    for (const { draft, file } of [...rest, transcript]) await rename(draft, file);
  } finally {
    // A renamed draft is gone.
    for (const { draft } of drafts.values()) await rm(draft, { force: true });
  }
  return project;
}

/** Removes a conversation written into the folder `project`, and nothing else. */
export async function removeConversation({ configFolder: root, transcriptId }: Conversation, project: string) {
  partsOf(`${transcriptId}.jsonl`, transcriptId);
  const written = [
    join(project, `${transcriptId}.jsonl`),
    join(project, transcriptId),
    join(root, CHECKPOINTS, transcriptId),
  ];
  for (const path of written) await rm(path, { recursive: true, force: true });
}

/** Returns the folder of the project of `cwd`, or the one that has the conversation to be replaced. */
async function findProject({ configFolder: folder, cwd, replaces, transcriptId }: Target): Promise<string> {
  // Throws for an id that is no id, before the id is part of a path.
  partsOf(`${transcriptId}.jsonl`, transcriptId);
  for (const file of await filesFor(transcriptId, folder)) {
    if (!(await exists(file))) continue;
    if (replaces) return dirname(file);
    const advice = "Resume it where it is, or delete the file.";
    throw invalidArgument("sessionId", `Claude Code has the conversation already, in ${file}. ${advice}`);
  }
  return join(folder, "projects", conversationsFolder(await realpath(cwd)));
}

/**
 * Creates `folder` below the configuration folder `root`, closed to other users, and returns its real path. Throws INVALID_ARGUMENT if a
 * symbolic link below `root` leads elsewhere.
 */
async function createFolder(root: string, folder: string): Promise<string> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  let made = await realpath(root);
  for (const part of folder.slice(root.length).split(/[\\/]/)) {
    if (part === "") continue;
    made = join(made, part);
    await mkdir(made, { mode: 0o700 }).catch(ignoreExisting);
    const found = await lstat(made).catch(otherwise(undefined));
    if (found?.isDirectory() !== true)
      throw invalidArgument("configFolder", `${made} is not a folder, or a symbolic link.`);
  }
  return made;
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
}

async function writeDraft(draft: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  const handle = await open(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    for await (const part of parts) await handle.writeFile(part);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
