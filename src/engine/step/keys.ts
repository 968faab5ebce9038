import type { CommandOf } from "../../domain/command.ts";
import type { Refusal } from "../../domain/error.ts";
import type { SessionState } from "../../domain/session.ts";
import { accept, refuse, type Draft } from "./draft.ts";

/** Maximum number of prompt keys that a session remembers, and of entries in `recentCommands`. */
export const KEYS_KEPT = 20;

type Prompt = CommandOf<"prompt">;

/**
 * Handles a prompt with a known key: repeats the first reply, or refuses another prompt under the key. Returns false for a new
 * key. A prompt sent again because its first owner died has a known key, too.
 */
export function replyToRetry(draft: Draft, command: Prompt): boolean {
  const key = keyOf(command);
  const seen = draft.state.recentKeys.find((recent) => recent.key === key);
  if (!seen) return false;
  const misused = keyObjection(draft.state, command, "this session");
  if (misused) refuse(draft, command, misused.code, misused.message);
  else accept(draft, command, seen.cursor);
  return true;
}

/** Always keeps the first key, because the key of a start must find its session as long as the session exists. */
export function noteKey(state: SessionState, command: Prompt, cursor: number): void {
  const { digest } = command.data;
  const noted = { key: keyOf(command), cursor, ...(digest !== undefined && { digest }) };
  const known = [...state.recentKeys, noted];
  state.recentKeys = [...known.slice(0, 1), ...known.slice(1).slice(1 - KEYS_KEPT)];
}

/**
 * Returns a refusal if the key was given before with another prompt. A prompt without `digest`, from an older server, counts as
 * a retry.
 */
export function keyObjection({ recentKeys }: SessionState, command: Prompt, session: string): Refusal | undefined {
  const { digest } = command.data;
  const seen = recentKeys.find(({ key }) => key === keyOf(command));
  if (seen?.digest === undefined || digest === undefined || seen.digest === digest) return undefined;
  const problem = `was given before with another prompt, which ${session} has taken`;
  const advice = "To retry, repeat that prompt; for a new prompt, use a new key.";
  return { code: "INVALID_ARGUMENT", message: `idempotencyKey: ${problem}. ${advice}` };
}

function keyOf({ data }: Prompt): string {
  return data.idempotencyKey ?? data.promptId;
}
