import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { z } from "zod";
import { parseJson } from "../../domain/json.ts";
import { exists, otherwise, readdir } from "../../security/files/limited.ts";
import { close, openPlainFile, readParts } from "../../security/files/plain-file.ts";
import { StartError } from "../start-error.ts";
import { LineLimit } from "../supervise/output.ts";
import type { AgentStart } from "../../engine/ports.ts";

/**
 * Returns the file in which Claude Code has written at least one message of the session. A Claude Code killed before its first
 * request leaves no file, or a file of listings only, which Claude Code itself does not find. Searches the folders of all
 * projects, so that the folder in which the session began need not be known.
 */
export async function findTranscript(sessionId: string, configFolder: string): Promise<string | undefined> {
  const files = await filesFor(sessionId, configFolder);
  const found = await Promise.all(files.map(async (file) => ((await holdsMessages(file)) ? [file] : [])));
  return found.flat().at(0);
}

/** Returns the possible files of the transcript, one for each project. */
export async function filesFor(sessionId: string, configFolder: string): Promise<string[]> {
  const projects = join(configFolder, "projects");
  const entries = await readdir(projects).catch(otherwise([]));
  return entries.map(({ name }) => join(projects, name, `${sessionId}.jsonl`));
}

/** Returns the `promptIds` that began or joined a turn in the transcript. A prompt that only waited is absent. */
export async function findPrompts(transcript: string, promptIds: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  if (promptIds.length === 0) return found;
  for await (const line of readLines(transcript)) {
    for (const id of promptIds) if (line.includes(id)) found.add(id);
  }
  return found;
}

const Entry = z.object({
  type: z.string(),
  isSidechain: z.boolean().optional(),
  isApiErrorMessage: z.boolean().optional(),
  error: z.string().optional(),
});

/** True if the conversation ends with a request that the API has refused, so that Claude Code can send it again. */
async function endsRefused(transcript: string): Promise<boolean> {
  let isRefused = false;
  for await (const line of readLines(transcript)) {
    if (!MESSAGE.test(line)) continue;
    const entry = Entry.safeParse(parseJson(line)).data;
    if (entry && (entry.isSidechain === true || (entry.type !== "user" && entry.type !== "assistant"))) continue;
    // A line that cannot be read may be the end of an answer.
    isRefused = entry?.isApiErrorMessage === true && entry.error === "rate_limit";
  }
  return isRefused;
}

const FOLDER = /"cwd":("(?:[^"\\]|\\.)*")/;

/** Returns the last working directory of the session. */
export async function readLastFolder(transcript: string): Promise<string | undefined> {
  let folder: string | undefined;
  for await (const line of readLines(transcript)) {
    const [, quoted] = FOLDER.exec(line) ?? [];
    if (quoted !== undefined) folder = String(JSON.parse(quoted));
  }
  return folder;
}

/** Claude Code also resumes a transcript with only a system message, the trace of a prompt blocked by a hook. */
const MESSAGE = /"type":"(?:user|assistant|system)"/;

async function holdsMessages(file: string): Promise<boolean> {
  try {
    for await (const line of readLines(file)) if (MESSAGE.test(line)) return true;
    return false;
  } catch (error) {
    // The project has no such file, or the file cannot be Claude Code's.
    return otherwise(false)(error);
  }
}

/**
 * Throws at a line above the bounds of Claude Code's output: shell commands of a session can write to the file, with lines of
 * any length.
 */
export async function* readLines(file: string): AsyncGenerator<string> {
  const handle = await openPlainFile(file);
  const input = Readable.from(readParts(file, handle));
  let fault: string | undefined;
  const limit = new LineLimit((why) => {
    fault = why;
    input.destroy();
  });
  input.on("error", (error) => limit.destroy(error));
  try {
    yield* createInterface({ input: input.pipe(limit) });
    if (fault !== undefined) throw new Error(`The transcript ${file} cannot be read. ${fault}.`);
  } finally {
    input.destroy();
    void close(file, handle);
  }
}

interface ResumePlan {
  readonly resumed: boolean;
  /** Prompts of `rerunOf` that the transcript lacks, so they never ran. */
  readonly missing: readonly string[];
  /** True if the transcript has the first prompt of `rerunOf`: Claude Code must then continue its interrupted turn. */
  readonly runsAgain: boolean;
  readonly options: Partial<Options>;
}

/**
 * Resumes from the session's own transcript or from a copy of the origin's, or starts afresh if nothing was said yet. Throws
 * `StartError` if a conversation has lost its transcript, because Claude Code would continue without a memory, and if a refused
 * request is to be sent again that is not the last.
 */
export async function planResume(start: AgentStart, configFolder: string): Promise<ResumePlan> {
  const { first, hasSpoken, origin, rerunOf = [], resumeAt, sessionId, transcriptId } = start;
  const none = { missing: [], runsAgain: false };
  if (start.sendsAgain) return planSendAgain(transcriptId, configFolder);
  const own =
    !first || origin?.transcriptId === transcriptId ? await findTranscript(transcriptId, configFolder) : undefined;
  if (own !== undefined) return ownPlan(start, own);
  if (hasSpoken) throw transcriptMissing(transcriptId, configFolder);
  if (!origin) {
    const id = first ? transcriptId : await freeId(transcriptId, configFolder);
    // After a `/clear`, `id` differs from `sessionId`; nothing was said since.
    return { ...none, resumed: false, options: { sessionId: id } };
  }
  if ((await findTranscript(origin.transcriptId, configFolder)) !== undefined) {
    const id = first ? sessionId : await freeId(sessionId, configFolder);
    const options = { resume: origin.transcriptId, forkSession: true, sessionId: id, ...cutAt(resumeAt ?? origin.at) };
    return { ...none, resumed: true, missing: rerunOf, options };
  }
  if (origin.isNew !== true) throw transcriptMissing(origin.transcriptId, configFolder);
  return { ...none, resumed: false, options: { sessionId: await freeId(transcriptId, configFolder) } };
}

async function ownPlan({ first, origin, rerunOf = [], resumeAt, transcriptId }: AgentStart, transcript: string) {
  const known = await findPrompts(transcript, rerunOf);
  const [prompt] = rerunOf;
  const runsAgain = prompt !== undefined && known.has(prompt);
  // An interrupted turn went back to `resumeAt` at its first start; going back again would drop its work.
  const at = runsAgain ? undefined : (resumeAt ?? (first ? origin?.at : undefined));
  const missing = rerunOf.filter((id) => !known.has(id));
  return { resumed: true, missing, runsAgain, options: { resume: transcriptId, ...cutAt(at) } };
}

/** Without `resumeSessionAt`: the refused turn went back at its first start, and going back again would drop its work. */
async function planSendAgain(transcriptId: string, configFolder: string): Promise<ResumePlan> {
  const own = await findTranscript(transcriptId, configFolder);
  if (own !== undefined && (await endsRefused(own)))
    return { resumed: true, missing: [], runsAgain: false, options: { resume: transcriptId } };
  throw new StartError(
    "lost",
    "Claude Code's transcript does not end with the request that the API has refused, so nothing was sent again. Look at the work so far, then send a prompt to go on.",
  );
}

/**
 * Returns a new id if a file without messages exists, left by a Claude Code killed before its first request, because Claude
 * Code refuses such an id ("already in use"). `MessageReader` reports the new id.
 */
async function freeId(transcriptId: string, configFolder: string): Promise<string> {
  for (const file of await filesFor(transcriptId, configFolder)) if (await exists(file)) return randomUUID();
  return transcriptId;
}

function transcriptMissing(transcriptId: string, configFolder: string): StartError {
  const place = join(configFolder, "projects");
  const problem = `Claude Code's transcript of the conversation (${transcriptId}.jsonl in ${place}) is missing or holds no message`;
  const cause = "Claude Code deletes transcripts after `cleanupPeriodDays`, 30 by default";
  return new StartError(
    "transcript_missing",
    `${problem}, so the prompt was not sent: Claude would not remember it. ${cause}.`,
  );
}

function cutAt(at: string | undefined): Partial<Options> {
  return at === undefined ? {} : { resumeSessionAt: at };
}
