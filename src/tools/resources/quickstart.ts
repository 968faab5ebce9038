import type { Page } from "./define.ts";

export const quickstart: Page = {
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
