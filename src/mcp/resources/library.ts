import type { ToolLimits } from "../../tools/arguments/wait-limits.ts";
import type { Profile } from "../../domain/profile.ts";
import type { Library, Page } from "./resource.ts";
import { errors } from "./errors-page.ts";
import { session, sessionEvents } from "./session-documents.ts";
import { optionsReference } from "./options-reference.ts";
import { skillPage } from "./skill.ts";

const quickstart: Page = {
  uri: "claude-code://quickstart",
  name: "quickstart",
  title: "Quickstart",
  description: "How to run a task with Claude Code: start, poll, answer requests, reply.",
  mimeType: "text/markdown",
  text: (limits) => `# Quickstart

A session is a conversation with Claude Code that runs in the background of this server. It outlives your calls.

1. Start: claude_code { "prompt": "Fix the failing test in auth.ts", "cwd": "/path/to/project" }
   ${answerOfStart(limits)}
2. Poll: claude_code_check { "action": "poll", "sessionId": "...", "cursor": nextCursor }
   It returns when the turn ends, when a permission is requested, or after waitMs. Do not poll in a loop without
   waitMs: the call waits for you. Pass nextCursor each time, so that no event is returned twice.
3. Answer each entry of actions[].
   claude_code_check { "action": "respond_permission", "sessionId": "...", "requestId": "...", "decision": "allow" }
   It then waits like a poll. See claude-code://permissions.
   waiting beside the status says why work stands still, such as at a limit of the plan, and until when.
4. result is present once no turn runs. isError says whether it failed. See claude-code://errors.
   result.receipt is what the server saw (files, tests, commands, exit codes), whatever the text says. advanced.verify
   (["npm test"]) makes the server run commands when a turn is done, and Claude Code repair what fails.
5. Continue: claude_code_reply { "sessionId": "...", "prompt": "Now write a test for it" }
6. List sessions: claude_code_session { "action": "list" }, or get one with a sessionId. cancel ends one permanently.

To get fewer requests, name tools in allowedTools (["Read", "Edit", "Bash(npm test)"]) or choose permissionMode acceptEdits.
All options: claude-code://options. A session as a document: claude-code://sessions/ID, its events: claude-code://sessions/ID/events.
`,
};

function answerOfStart({ followsTasks, maxWaitMs, waitsByDefault }: ToolLimits): string {
  const most = `at most ${String(maxWaitMs)}`;
  if (followsTasks)
    return `It returns at once. The result comes by itself, as a notification, and requests are shown to the user in a form:
   2 and 3 are for sessions of other clients.`;
  return waitsByDefault
    ? `It returns the result or actions[] if they come within waitMs (default and ${most}), and sessionId and nextCursor.`
    : `It returns at once with sessionId and nextCursor. With waitMs (${most}) it returns the result if the turn ends
   within that time.`;
}

const permissions: Page = {
  uri: "claude-code://permissions",
  name: "permissions",
  title: "Permissions",
  description: "What Claude Code may do: tools, permission modes, requests and how to answer them.",
  mimeType: "text/markdown",
  text: () => `# Permissions

The first of these that applies decides about a tool call:

1. tools: a tool that is not listed is not available to Claude Code.
2. disallowedTools and deny rules: never runs, even if approved.
3. allowedTools: runs at once. A rule can be narrow: "Bash(git *)", "Read(src/**)".
4. permissionMode: default asks before anything that changes or leaves the folder, and runs without asking what reads in it (Read,
   cat, git status), subagents (Agent) and skills (Skill), unless a rule of the operator asks; acceptEdits allows edits of
   files in the folder; plan only reads and makes a plan; dontAsk denies what would be asked; auto lets Claude Code decide;
   bypassPermissions never asks and must be allowed by the operator (--allow-bypass).
5. The operator's rules: an allowed call runs, a denied call does not.
6. Otherwise the operator's approvers are asked in order: the status is waiting_permission and the request is in actions[] of
   claude_code_check. waitsFor names the current approver, for waitsMs; without it, it is you. You may deny at any time, and
   allow once it is your turn, up to the risk that you may approve.

Answers (action respond_permission with requestId):

- decision allow; with permissionOptions.updatedInput the tool runs with that input instead (only after you have read
  the whole input: on inputTruncated poll with a larger maxBytes first, or read the event inputEventId); with
  updatedPermissions rules change for this session: responseMode delta_compact lists Claude Code's suggestions.
- decision allow_for_session: also remembered until the session ends or claude_code_session (revoke) removes it.
- decision deny; denyMessage tells Claude Code why and what to do instead, interrupt ends the turn.

Answer a question (type question) with action answer_question and answers { "the question": "a label" }.

A request of toolName Verification is about commands that the server itself runs when the turn is done (verify). Its input
cannot be changed.

An unanswered request is denied after remainingMs. The first answer counts; a second one fails with
PERMISSION_REQUEST_NOT_FOUND. Subagents ask too (agentID), and several requests can be open at once.
`,
};

const options: Page = {
  uri: "claude-code://options",
  name: "options",
  title: "Options of a session",
  description: "Every option of claude_code, with its type, default and meaning.",
  mimeType: "text/markdown",
  text: optionsReference,
};

const profiles: Page = {
  uri: "claude-code://profiles",
  name: "profiles",
  title: "Profiles",
  description: "Profiles of the operator that you may start a session with: advanced.profile of claude_code.",
  mimeType: "application/json",
  async text(_, { principal }, deps) {
    const { profilesOf } = await deps();
    return JSON.stringify({ profiles: Object.entries(profilesOf(principal)).map(([name, each]) => shown(name, each)) });
  },
};

/** Leaves out paths, options and variables. */
function shown(name: string, { budgetUsdPerDay, description, model, planReserve }: Profile) {
  const limits = { hasBudget: budgetUsdPerDay !== undefined, hasReserve: planReserve !== undefined };
  return { name, description, model, ...limits };
}

/** All resources of a server with the toolset `agent`. */
export const LIBRARY: Library = {
  pages: [quickstart, permissions, errors, options, profiles, skillPage],
  documents: [session, sessionEvents],
};
