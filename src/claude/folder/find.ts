import { join } from "node:path";
import { z } from "zod";
import type { FoundSession, OpenIn } from "../../engine/ports.ts";
import { otherwise, readdir } from "../../security/files/limited.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import { startTime } from "../supervise/tree.ts";
import { readLastFolder, findTranscript } from "./transcript.ts";

/** Finds a session kept by Claude Code, however started: in a terminal, by another tool or by another server. */
export async function findSession(sessionId: string, configFolder: string): Promise<FoundSession | undefined> {
  // `sessionId` becomes part of a path.
  if (!CONVERSATION_ID.test(sessionId)) return undefined;
  const transcript = await findTranscript(sessionId, configFolder);
  if (transcript === undefined) return undefined;
  return { cwd: await readLastFolder(transcript) };
}

/** Id of a conversation, by which Claude Code names its files. */
export const CONVERSATION_ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Maximum size of the file, bytes; normally a few fields. */
const MAX_OPEN_BYTES = 65_536;

/** File that every running Claude Code writes, named by its pid. */
const OpenSession = z.looseObject({
  pid: z.number(),
  sessionId: z.string(),
  procStart: z.string().optional(),
  entrypoint: z.string().optional(),
});

/**
 * Finds the process with the session open. Two processes would both continue the session, and the work of one would be lost.
 */
export async function findOpenProcess(sessionId: string, configFolder: string): Promise<OpenIn | undefined> {
  const folder = join(configFolder, "sessions");
  const entries = await readdir(folder).catch(otherwise([]));
  for (const { name } of entries.filter((each) => each.name.endsWith(".json"))) {
    const open = OpenSession.safeParse(await readJson(join(folder, name)));
    if (!open.success || open.data.sessionId !== sessionId || !(await isRunning(open.data))) continue;
    return { pid: open.data.pid, how: open.data.entrypoint ?? "unknown" };
  }
  return undefined;
}

/** A killed process leaves its file behind, and its pid may have been reused. */
async function isRunning({ pid, procStart }: z.infer<typeof OpenSession>): Promise<boolean> {
  const started = await startTime(pid);
  // Only on Linux do Claude Code and this server use equal units for the start time.
  const isComparable = process.platform === "linux" && procStart !== undefined;
  return started !== undefined && (!isComparable || procStart === started);
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readSmall(file, MAX_OPEN_BYTES));
  } catch {
    // The file is being written, was just deleted, or is not Claude Code's.
    return undefined;
  }
}
