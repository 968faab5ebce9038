import type { Library, Page } from "./resource.ts";
import { errors } from "./errors-page.ts";
import { session, sessionEvents } from "./session-documents.ts";
import { optionsReference } from "./options-reference.ts";

/** The pages and documents that a model may read beside calling tools. */

const quickstart: Page = {
  uri: "claude-code://quickstart",
  name: "quickstart",
  title: "Quickstart",
  description: "How to run a task with Claude Code: start, wait, decide, go on.",
  mimeType: "text/markdown",
  text: ({ maxWaitMs }) => `# Quickstart

A session is a conversation with Claude Code that runs in the background of this server. It outlives your calls.

1. Start: claude_code { "prompt": "Fix the failing test in auth.ts", "cwd": "/path/to/project" }
   It returns at once with sessionId and nextCursor. With waitMs (at most ${String(maxWaitMs)}) it returns the result if the turn ends
   within that time.
2. Wait: claude_code_check { "action": "poll", "sessionId": "...", "cursor": nextCursor }
   It comes back when the turn has ended, when something is asked, or after waitMs. Do not call it in a loop without
   waiting: it waits for you. Pass nextCursor on, so that nothing is told twice.
3. Decide: each entry of actions[] waits for you.
   claude_code_check { "action": "respond_permission", "sessionId": "...", "requestId": "...", "decision": "allow" }
   It waits for the next news as well. See claude-code://permissions.
4. result is there once no turn runs. isError says whether it went well. See claude-code://errors.
5. Go on: claude_code_reply { "sessionId": "...", "prompt": "Now write a test for it" }
6. Look around: claude_code_session { "action": "list" }, or get with a sessionId. cancel ends one for good.

To be asked less, name tools in allowedTools (["Read", "Edit", "Bash(npm test)"]) or choose permissionMode acceptEdits.
All options: claude-code://options. A session as a document: session://ID, its events: session://ID/events.
`,
};

const permissions: Page = {
  uri: "claude-code://permissions",
  name: "permissions",
  title: "Permissions",
  description: "Who may do what: tools, modes, requests and how they are answered.",
  mimeType: "text/markdown",
  text: () => `# Permissions

What decides about a tool call, the first that applies:

1. tools: what is not in it does not exist for Claude Code.
2. disallowedTools and deny rules: never, whatever anybody approves.
3. allowedTools: at once. A rule may be narrowed: "Bash(git *)", "Read(src/**)".
4. permissionMode: default asks for what changes something or leaves the folder, and runs unasked what reads in the folder (Read,
   cat, git status), subagents (Agent) and skills (Skill), unless a rule of the operator asks; acceptEdits lets files in the folder be
   edited; plan only reads and makes a plan; dontAsk denies what would be asked; auto lets Claude Code judge; bypassPermissions
   asks nothing and needs the operator's leave (--allow-bypass).
5. The operator's rules: what they allow runs, what they deny does not.
6. Otherwise somebody is asked, in the operator's order: the status is waiting_permission and the request is in actions[] of
   claude_code_check. waitsFor says whom it is with, for waitsMs; without it, you are asked. You may deny at any time, and allow
   what is not more than you may approve (risk) once it is with you.

Answers (action respond_permission with requestId):

- decision allow; with permissionOptions.updatedInput the tool runs with that input instead (only after you have seen the
  input whole: inputTruncated means poll with a larger maxBytes first, or read the event inputEventId); with
  updatedPermissions rules change for this session: responseMode delta_compact lists Claude Code's suggestions.
- decision allow_for_session: also remembered until the session ends, or until claude_code_session (revoke) takes it back.
- decision deny; denyMessage tells Claude Code why and what to do instead, interrupt ends the turn.

A question (type question) is answered by action answer_question with answers { "the question": "a label" }.

A request that nobody answers is denied when its time is over (remainingMs). The first answer holds; a second
one is PERMISSION_REQUEST_NOT_FOUND. Subagents ask too (agentID), several requests may be open at once.
`,
};

const options: Page = {
  uri: "claude-code://options",
  name: "options",
  title: "Options of a session",
  description: "Every option that claude_code takes, with its type, default and meaning.",
  mimeType: "text/markdown",
  text: optionsReference,
};

/** All that can be read from a server with the toolset `agent`. */
export const LIBRARY: Library = {
  pages: [quickstart, permissions, errors, options],
  documents: [session, sessionEvents],
};
