import type { JsonObject } from "../../domain/json.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { answerCheck } from "../check/answer.ts";
import { readRequest } from "../check/request.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import type { SessionView } from "../session-view.ts";

/** A turn that Claude Code begins by itself may ask as well, when no call is there to deny it, ms. */
const UNATTENDED_MS = 5_000;

/** What sessions are started with where no caller can answer. */
export function unattended({ callersAnswer }: ToolDeps): Pick<SessionOptions, "permissionRequestTimeoutMs"> {
  return callersAnswer ? {} : { permissionRequestTimeoutMs: UNATTENDED_MS };
}

const HOW =
  "Answer each of actions[] with claude_code_check (until: end, cursor: nextCursor); that waits for the rest.";

/** What is asked, as claude_code_check tells it, for a call that returns before its turn has ended. */
export async function tellAsks(
  view: SessionView,
  { cursor, maxBytes }: { cursor: number; maxBytes: number },
  call: ToolCall,
  deps: ToolDeps,
): Promise<JsonObject> {
  const without = { includeEvents: false, includeResult: false };
  const request = readRequest({ waitMs: 0, maxBytes, pollOptions: without }, deps.limits);
  const told = await answerCheck({ ...request, targets: [{ view, cursor }], several: false }, call, deps);
  return { status: told["status"], actions: told["actions"], nextCursor: cursor, next: HOW };
}
