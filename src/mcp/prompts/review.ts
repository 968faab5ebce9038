import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { Folder } from "../../domain/options.ts";
import type { Caller } from "../../domain/principal.ts";
import { statusOf } from "../../domain/session.ts";
import { SessionId } from "../../engine/actions/input.ts";
import { get } from "../../engine/actions/reading.ts";
import { start } from "../../engine/actions/begin.ts";
import { requireScope } from "../../engine/actions/scope.ts";
import type { ToolDeps } from "../../tools/define.ts";
import { call } from "./delegate.ts";
import { definePrompt } from "./prompt.ts";

const Input = z.strictObject({
  sessionId: SessionId.exactOptional().describe("the session whose work is to be looked at"),
  cwd: Folder.exactOptional().describe("or a folder, absolute: what is not committed in it"),
});

/** What has changed, and whether it is good. */
export const review = definePrompt({
  name: "review",
  title: "Review what was changed",
  description: "Look at what a session, or anybody in a folder, has changed, and judge it.",
  input: Input,
  kinds: { sessionId: "session", cwd: "folder" },
  scopes: [get.scope],
  write: async ({ cwd, sessionId }, caller, deps) => {
    if (sessionId !== undefined && cwd !== undefined) {
      throw invalidArgument("cwd", "goes without sessionId: a session has its folder. Give one of them.");
    }
    if (sessionId !== undefined) return ofSession(sessionId, caller, await deps());
    if (cwd === undefined) throw invalidArgument("sessionId", "is required, or cwd for a folder.");
    requireScope(caller, start.scope, "Having a folder reviewed");
    return ofFolder(cwd);
  },
});

const JUDGING = `Judge whether it does what was asked, what it breaks, which cases it forgets, what is not tested, and what does not
   belong there.`;
const REPORT = `Report the findings, the worst first: file and line, what is wrong, what to do. Say so where there is nothing to find.`;

async function ofSession(sessionId: string, caller: Caller, { engine }: ToolDeps): Promise<string> {
  const { state } = await engine.forCaller(caller).get(caller.principal, sessionId);
  const running = state.turn ? " A turn runs in it: what you see is not its last word." : "";
  return `Review what session ${sessionId} has changed. It is ${statusOf(state)}; model calls so far: ${String(state.totals.turns)}.${running} Change nothing.

1. The changes: claude_code_session ${call({ action: "diff", sessionId })}
   files are its own edits as patches; git is how its folder stands, with what its shells have done.
2. What was asked and said: claude_code_check ${call({ action: "poll", sessionId, cursor: 1, waitMs: 0 })}
   Read on with nextCursor while truncatedFields names events.
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
  "Review what has changed in this folder since the last commit: git status, git diff HEAD, and the new files. Judge whether it does what it seems meant to do, what it breaks, which cases it forgets, what is not tested. Change nothing. Report the findings, the worst first, with file and line.";

function ofFolder(cwd: string): string {
  const args = { prompt: ASSIGNMENT, cwd, allowedTools: READING, disallowedTools: WRITING, waitMs: 30_000 };
  return `Have Claude Code review what has changed in ${cwd}. Nothing is to be changed.

1. claude_code ${call(args)}
2. As long as there is no result: claude_code_check ${call({ action: "poll", sessionId: "...", cursor: "nextCursor of the last answer" })}
   Deny what is asked for beyond reading.
3. Look yourself at each finding that you pass on, as far as you can. ${REPORT}`;
}
