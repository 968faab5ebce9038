import { createHash } from "node:crypto";
import type { Page } from "./resource.ts";

/**
 * Skill that teaches delegation, as a resource of the Skills extension (SEP-2640). The prompt `delegate` and the plugin for
 * Claude Code have the same text.
 */

/** Folder of the skill. Its last part is the name of the skill, as the extension requires. */
const FOLDER = "skill://claude-agents/delegate";

/** Without characters that need quotes in YAML. */
const FRONTMATTER = {
  name: "delegate",
  description:
    "Hand work to a Claude Code session in the background and supervise it. Use when a task can run beside or after this conversation, and when such a session asks, waits or ends.",
};

/** At most 3 KB with the frontmatter, because the whole text stays in the context of a model. */
export const SKILL_BODY = `# Delegate to Claude Code

## Brief

A session sees nothing of this conversation. Give \`claude_code\` an absolute \`cwd\` and put into \`prompt\`:

- the task and its reason, and what the session has to know: paths, errors, decisions already made;
- what it must not touch;
- how it can tell that it is done. Commands that prove it go into \`advanced.verify\` (\`["npm test"]\`): the server runs them when a turn ends, and the session repairs what fails.

One task per session. Do not let two sessions write in one folder. Keep the \`sessionId\`, and never start a task again because it is slow: \`waiting\` says why work stands still, and until when.

## Wait

- If your client follows the call as a task, the result comes by itself: do other work or end your turn, and do not poll. If your client gets events of this server, one wakes you: then read the result once (\`claude_code_check\`).
- Otherwise call \`claude_code_check\` (action \`poll\`, \`cursor\` = the last \`nextCursor\`) with a large \`waitMs\`: the call waits for you. Never poll in a loop with \`waitMs\` 0.

## Answer requests

A task shows its requests to the user. Otherwise each entry of \`actions[]\` needs an answer within \`remainingMs\`: \`claude_code_check\`, action \`respond_permission\` (\`answer_question\` for a question).

- Read the whole input first. Allow what the task needs. Deny the rest with a \`denyMessage\` that says what to do instead.
- Ask your user before you allow anything that cannot be undone, leaves the folder, or publishes.
- \`waitsFor\` names another approver: leave the request to them.

## Read the receipt

The text of a result is a claim. \`isError\` and \`receipt\` are what the server saw.

- \`commands.checks\`: "all tests pass" is shown by a check with \`exit\` 0, and by nothing else.
- \`tests\`: ask why a test was deleted, removed or skipped.
- \`files\`, \`commits\`, \`outside\`: compare with the task. \`claude_code_session\` with action \`diff\` has the changes.
- \`complete: false\`: changes can be missing. \`others\`: changes can be of other sessions.
- \`verification\`: the outcome of your \`verify\` commands.

## Continue or fork

- \`claude_code_reply\` sends corrections and the next step: the session remembers its work.
- With \`forkSession: true\` it begins a copy of the conversation: for a second attempt or a side question. \`resumeSessionAt\` goes back to a message. A fork works in the same folder, so let the original rest.
- Start a new session for unrelated work.

Report to your user what was done, what was not, what you decided, and the \`sessionId\`.
`;

export const SKILL_TEXT = `---
name: ${FRONTMATTER.name}
description: ${FRONTMATTER.description}
---

${SKILL_BODY}`;

export const skillPage: Page = {
  uri: `${FOLDER}/SKILL.md`,
  name: FRONTMATTER.name,
  title: "Skill: delegate to Claude Code",
  description: FRONTMATTER.description,
  mimeType: "text/markdown",
  text: () => SKILL_TEXT,
};

/** Returns the skill as `skills/list` and `skills/get` describe it. */
export function describeSkill() {
  const digest = `sha256:${createHash("sha256").update(SKILL_TEXT).digest("hex")}`;
  const { uri } = skillPage;
  return { uri, frontmatter: FRONTMATTER, resources: [{ uri, digest, size: Buffer.byteLength(SKILL_TEXT) }] };
}
