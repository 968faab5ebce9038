import type { Query } from "@anthropic-ai/claude-agent-sdk";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { AgentSignal } from "../../engine/ports.ts";
import { readLines, findTranscript } from "../folder/transcript.ts";
import { hookStopped } from "../side-reports.ts";
import { withServerErrors } from "./failed-servers.ts";

/** Polling interval for the transcript, which Claude Code writes with some delay, ms. */
const LOOK_EVERY_MS = 100;
const LOOKS = 5;

/** Tolerance between the timestamp of a line and the duration of the turn, ms. */
const TOLERANCE_MS = 1000;

const Stopped = z.object({
  timestamp: z.string(),
  attachment: z.object({
    type: z.literal("hook_stopped_continuation"),
    message: z.string().catch(""),
    hookName: z.string(),
  }),
});

interface TranscriptPlace {
  readonly transcriptId: string;
  readonly configFolder: string;
  readonly mask: (text: string) => string;
}

/** Adds a reason missing in the message of `signal`, from Claude Code or its transcript. */
export async function withReason(signal: AgentSignal, query: Query, place: TranscriptPlace): Promise<AgentSignal> {
  return signal.type === "notice" ? withServerErrors(signal, query, place.mask) : withHookReason(signal, place);
}

/** Only the transcript names the hook that ended a turn, with the reason. */
async function withHookReason(signal: AgentSignal, place: TranscriptPlace): Promise<AgentSignal> {
  if (signal.type !== "result" || signal.result.failure?.subtype !== "hook_stopped") return signal;
  const { numTurns, durationMs } = signal.result;
  if (numTurns === 0) return signal;
  const since = Date.now() - durationMs - TOLERANCE_MS;
  const reason = await readHookReason(since, place).catch(() => undefined);
  if (reason === undefined) return signal;
  return { ...signal, result: { ...signal.result, failure: hookStopped(place.mask(reason)) } };
}

async function readHookReason(
  since: number,
  { configFolder, transcriptId }: TranscriptPlace,
): Promise<string | undefined> {
  for (let look = 1; ; look += 1) {
    const transcript = await findTranscript(transcriptId, configFolder);
    let reason: string | undefined;
    for await (const line of transcript === undefined ? [] : readLines(transcript)) {
      if (line.includes('"hook_stopped_continuation"')) reason = reasonIn(line, since) ?? reason;
    }
    if (reason !== undefined || look === LOOKS) return reason;
    await sleep(LOOK_EVERY_MS, undefined, { ref: false });
  }
}

function reasonIn(line: string, since: number): string | undefined {
  const read = Stopped.safeParse(JSON.parse(line));
  if (!read.success || Date.parse(read.data.timestamp) < since) return undefined;
  const { hookName, message } = read.data.attachment;
  return message === "" ? hookName : `${hookName}: ${message}`;
}
