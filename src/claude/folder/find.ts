import { join } from "node:path";
import { z } from "zod";
import type { FoundSession, OpenIn } from "../../engine/ports.ts";
import { otherwise, readdir } from "../../security/files/limited.ts";
import { readSmall } from "../../security/files/plain-file.ts";
import { startTime } from "../supervise/tree.ts";
import { lastFolder, transcriptOf } from "./transcript.ts";

/** A session that Claude Code has kept, however it was started: in a terminal, by another tool or by another server. */
export async function findSession(sessionId: string, configFolder: string): Promise<FoundSession | undefined> {
  // It becomes part of a path.
  if (!UUID.test(sessionId)) return undefined;
  const transcript = await transcriptOf(sessionId, configFolder);
  if (transcript === undefined) return undefined;
  return { cwd: await lastFolder(transcript) };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** It holds a few fields. */
const MAX_OPEN_BYTES = 65_536;

/** Every running Claude Code writes one, named by its pid. */
const OpenSession = z.looseObject({
  pid: z.number(),
  sessionId: z.string(),
  procStart: z.string().optional(),
  entrypoint: z.string().optional(),
});

/** The process that has the session open. Two at once would both go on with it, and what one of them did would be lost. */
export async function openIn(sessionId: string, configFolder: string): Promise<OpenIn | undefined> {
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
  // Only on Linux both of us write the start time in the same unit.
  const isComparable = process.platform === "linux" && procStart !== undefined;
  return started !== undefined && (!isComparable || procStart === started);
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readSmall(file, MAX_OPEN_BYTES));
  } catch {
    // It is being written, has just gone, or is nothing that Claude Code has written.
    return undefined;
  }
}
