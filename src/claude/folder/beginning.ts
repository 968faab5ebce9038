import type { Options } from "@anthropic-ai/claude-agent-sdk";
import type { AgentStart } from "../../engine/ports.ts";
import { promptsIn, transcriptOf } from "./transcript.ts";

export interface Beginning {
  readonly resumed: boolean;
  /** Prompts of the turn that is to be run again, of which nothing was written down. */
  readonly missing: readonly string[];
  /** Claude Code is to run the turn again that it was interrupted in. */
  readonly runsAgain: boolean;
  readonly options: Partial<Options>;
}

/** With its own transcript, with a copy of another's, or afresh where there is nothing to go on with. */
export async function beginningOf(start: AgentStart, configFolder: string): Promise<Beginning> {
  const { first, origin, rerunOf = [], resumeAt, sessionId, transcriptId } = start;
  const none = { missing: [], runsAgain: false };
  const own =
    !first || origin?.transcriptId === transcriptId ? await transcriptOf(transcriptId, configFolder) : undefined;
  if (own !== undefined) {
    const known = await promptsIn(own, rerunOf);
    const [prompt] = rerunOf;
    const runsAgain = prompt !== undefined && known.has(prompt);
    // A turn that has begun has gone back in the conversation already.
    const at = runsAgain ? undefined : (resumeAt ?? (first ? origin?.at : undefined));
    const missing = rerunOf.filter((id) => !known.has(id));
    return { resumed: true, missing, runsAgain, options: { resume: transcriptId, ...cutAt(at) } };
  }
  if (origin && (await transcriptOf(origin.transcriptId, configFolder)) !== undefined) {
    const options = { resume: origin.transcriptId, forkSession: true, sessionId, ...cutAt(resumeAt ?? origin.at) };
    return { ...none, resumed: true, missing: rerunOf, options };
  }
  // Another than `sessionId` after a `/clear`, of which nothing was said yet.
  return { ...none, resumed: false, options: { sessionId: transcriptId } };
}

function cutAt(at: string | undefined): Partial<Options> {
  return at === undefined ? {} : { resumeSessionAt: at };
}
