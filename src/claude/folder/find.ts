import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { FoundSession } from "../../engine/ports.ts";
import { startTime } from "../supervise/tree.ts";
import { lastFolder, transcriptOf } from "./transcript.ts";

/** A session that Claude Code has kept, whoever ran it: in a terminal, from another tool, through another server. */
export async function findSession(sessionId: string, configFolder: string): Promise<FoundSession | undefined> {
  // It becomes part of a path.
  if (!UUID.test(sessionId)) return undefined;
  const transcript = await transcriptOf(sessionId, configFolder);
  if (transcript === undefined) return undefined;
  return { cwd: await lastFolder(transcript), openIn: await openIn(sessionId, configFolder) };
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** Every running Claude Code writes one, named by its pid. */
const OpenSession = z.looseObject({ pid: z.number(), sessionId: z.string(), entrypoint: z.string().optional() });

async function openIn(sessionId: string, configFolder: string): Promise<FoundSession["openIn"]> {
  const folder = join(configFolder, "sessions");
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((each) => each.endsWith(".json"))) {
    const open = OpenSession.safeParse(await readJson(join(folder, name)));
    // One that was killed leaves its file behind.
    if (!open.success || open.data.sessionId !== sessionId || !(await startTime(open.data.pid))) continue;
    return { pid: open.data.pid, how: open.data.entrypoint ?? "unknown" };
  }
  return undefined;
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, "utf8"));
  } catch {
    // It is being written, or has just gone.
    return undefined;
  }
}
