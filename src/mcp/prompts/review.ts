import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { Folder } from "../../domain/options.ts";
import type { Caller } from "../../domain/principal.ts";
import { statusOf } from "../../domain/session.ts";
import { SessionId } from "../../engine/actions/input.ts";
import { get } from "../../engine/actions/reading.ts";
import { start } from "../../engine/actions/begin.ts";
import { requireScope } from "../../engine/actions/scope.ts";
import type { ToolLimits } from "../../tools/arguments/wait-limits.ts";
import type { ToolDeps } from "../../tools/define.ts";
import { formatArguments } from "./delegate.ts";
import { definePrompt, shortWait } from "./define-prompt.ts";

const Input = z.strictObject({
  sessionId: SessionId.exactOptional().describe("session whose changes to review"),
  cwd: Folder.exactOptional().describe("or absolute path of a folder whose uncommitted changes to review"),
});

export const review = definePrompt({
  name: "review",
  title: "Review what was changed",
  description: "Review what a session has changed, or the uncommitted changes in a folder.",
  input: Input,
  kinds: { sessionId: "session", cwd: "folder" },
  scopes: [get.scope],
  write: async ({ cwd, sessionId }, caller, deps) => {
    if (sessionId !== undefined && cwd !== undefined) {
      throw invalidArgument(
        "cwd",
        "cannot be combined with sessionId: a session has its own folder. Give one of them.",
      );
    }
    if (sessionId !== undefined) return reviewSessionText(sessionId, caller, await deps());
    if (cwd === undefined) throw invalidArgument("sessionId", "is required, or cwd to review a folder.");
    requireScope(caller, start.scope, "Having a folder reviewed");
    return reviewFolderText(cwd, caller.limits);
  },
});

const JUDGING = `Judge whether it does what was asked, what it breaks, which cases it misses, what is not tested, and what does not
   belong there.`;
const REPORT = `Report the findings, most severe first: file and line, what is wrong, what to do. Say so if there are none.`;

async function reviewSessionText(sessionId: string, caller: Caller, { engine }: ToolDeps): Promise<string> {
  const { state } = await engine.forCaller(caller).get(caller.principal, sessionId);
  const running = state.turn ? " A turn is running: what you see is not final." : "";
  return `Review what session ${sessionId} has changed. It is ${statusOf(state)}; model calls so far: ${String(state.totals.turns)}.${running} Change nothing.

1. The changes: claude_code_session ${formatArguments({ action: "diff", sessionId })}
   files has its own edits as patches; git has the state of its folder, including changes by its shell commands.
2. The conversation: claude_code_check ${formatArguments({ action: "poll", sessionId, cursor: 1, waitMs: 0 })}
   Continue with nextCursor while truncatedFields names events.
3. ${JUDGING}
4. ${REPORT}`;
}

const READING = [
  "Read",
  "Grep",
  "Glob",
  "Bash(git status *)",
  "Bash(git diff *)",
  "Bash(git log *)",
  "Bash(git show *)",
];
const WRITING = ["Edit", "Write", "NotebookEdit"];
const ASSIGNMENT =
  "Review what has changed in this folder since the last commit: git status, git diff HEAD, and the new files. Judge whether it does what it seems meant to do, what it breaks, which cases it misses, what is not tested. Change nothing. Report the findings, most severe first, with file and line.";

function reviewFolderText(cwd: string, limits: ToolLimits): string {
  const poll = `claude_code_check ${formatArguments({ action: "poll", sessionId: "...", cursor: "nextCursor of the last answer" })}`;
  const wait = limits.followsTasks === true ? "The result comes by itself." : `While there is no result: ${poll}`;
  const args = { prompt: ASSIGNMENT, cwd, allowedTools: READING, disallowedTools: WRITING, ...shortWait(limits) };
  return `Have Claude Code review what has changed in ${cwd}. It must not change anything.

1. claude_code ${formatArguments(args)}
2. ${wait}
   Deny every request that is not for reading.
3. Verify each finding yourself, as far as you can. ${REPORT}`;
}
