import type { Page } from "./define.ts";

export const permissions: Page = {
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
