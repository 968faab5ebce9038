import { ErrorCode } from "../../domain/refusal.ts";
import type { Page } from "./resource.ts";

interface Explanation {
  /** Condition under which a call fails with the code. */
  readonly when: string;
  readonly todo: string;
}

/** Explains every `ErrorCode`, for the page and for docs/tools.md. */
export const ERRORS: Readonly<Record<ErrorCode, Explanation>> = {
  INVALID_ARGUMENT: {
    when: "an argument is missing, wrong, unknown, or conflicts with another",
    todo: "Fix the argument that the message names and call again.",
  },
  SESSION_NOT_FOUND: {
    when: "there is no such session, or it is not yours",
    todo: "Look for it with claude_code_session (list), or start one.",
  },
  SESSION_BUSY: {
    when: "a prompt while a turn runs, or one that a reserve or a budget keeps from starting; action continue before the reset",
    todo: "Wait with claude_code_check (until: end), or until the time in the message, then send it.",
  },
  PERMISSION_DENIED: {
    when: "the operator of the server does not allow it",
    todo: "Do without it, or ask the operator for the setting that the message names.",
  },
  PERMISSION_REQUEST_NOT_FOUND: {
    when: "the request is already answered, or never existed",
    todo: "Poll: actions[] lists open requests. The first answer counts.",
  },
  TIMEOUT: {
    when: "as the code of a result: the turn exceeded its time limit or was inactive, or Claude Code did not start; as an error: the server that owns the session, or a folder or file, did not answer in time",
    todo: "Reply to continue where the turn stopped, in smaller steps; or call again.",
  },
  CANCELLED: {
    when: "a prompt for a session that is cancelled or closed; as the code of a result: the session was cancelled in that turn",
    todo: "Start a new session.",
  },
  INTERNAL: {
    when: "a fault of the server or of its store",
    todo: "Try again. The message says what to fix, or has a fault id to look up in the server's log.",
  },
};

const CODES = ErrorCode.options.map((code) => `- ${code}: ${ERRORS[code].when}. ${ERRORS[code].todo}`).join("\n");

export const errors: Page = {
  uri: "claude-code://errors",
  name: "errors",
  title: "Error codes",
  description: "What each error code means and what to do about it.",
  mimeType: "text/markdown",
  text: () => `# Errors

A call that fails has isError true and the text "Error [CODE]: what is wrong. What to do."; structuredContent has the code.

${CODES}

A failed turn is not an error of a call. It ends with a result: isError true, errorSubtype says why (error_max_turns,
api_error, time_limit, inactivity, init_timeout, start_failed, interrupted, lost, cancelled, ...), category says what
kind of failure it was:

- access: log in, or fix the key. billing: pay. limit: a limit of turns, time, money or the plan (resetsAt); see advice.
- overloaded, connection: wait a little, then reply. request: change the prompt or the options.
- configuration: the operator has to fix the server. unknown: read the result.

A session in status error accepts replies, as in status idle.
`,
};
