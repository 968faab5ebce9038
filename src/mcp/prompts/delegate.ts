import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import { Folder, ModelName } from "../../domain/options.ts";
import { answer } from "../../engine/actions/answering.ts";
import { start } from "../../engine/actions/begin.ts";
import { events } from "../../engine/actions/reading.ts";
import { definePrompt } from "./define-prompt.ts";

const Input = z.strictObject({
  task: z.string().min(1).max(100_000).describe("task for Claude Code"),
  cwd: Folder.exactOptional().describe("absolute path of the working directory"),
  model: ModelName.exactOptional().describe("model to use"),
  agent: z.string().min(1).max(200).exactOptional().describe("agent to run as"),
  skill: z.string().min(1).max(200).exactOptional().describe("skill to use"),
});

export const delegate = definePrompt({
  name: "delegate",
  title: "Hand a task to Claude Code",
  description: "Start Claude Code on a task, follow it, answer its requests and report.",
  input: Input,
  kinds: { cwd: "folder", model: "model", agent: "agent", skill: "skill" },
  scopes: [events.scope, start.scope],
  write: ({ agent, cwd, model, skill, task }, { scopes }) => {
    const given = {
      ...(cwd !== undefined && { cwd }),
      ...(model !== undefined && { model }),
      ...(agent !== undefined && { agent }),
    };
    const named = skill === undefined ? "" : ` Tell it to use the skill ${JSON.stringify(skill)}.`;
    return `Hand this task to Claude Code, follow it to its end and report the outcome to me.

<task>
${task}
</task>

1. Start it: claude_code ${formatArguments({ prompt: "...", ...given, waitMs: 30_000 })}
   Claude Code sees nothing of our conversation: put into the prompt the task, what it has to know, and how it can tell that
   it is done.${named} Keep the sessionId.
2. While there is no result: claude_code_check ${formatArguments({ action: "poll", sessionId: "...", cursor: "nextCursor of the last answer" })}
   The call waits by itself. Do not start the task a second time.
3. ${scopes.includes(answer.scope) ? ANSWERING : WAITING}
4. With the result: read isError and the text, and look at the changes with claude_code_session (action diff). Send
   corrections to the same session with claude_code_reply.
5. Tell me what was done, what was not, what you decided on my behalf, and the sessionId.`;
  },
});

const ANSWERING = `Answer every entry of actions[]: claude_code_check, action respond_permission (answer_question for a
   question). Allow what the task needs; deny what it does not, with a denyMessage that says what to do instead. Ask me first
   about anything that cannot be undone, leaves the folder, or publishes something.`;

const WAITING = `Entries of actions[] wait for another approver: you cannot answer them. Tell me about them and keep polling.`;

/** Formats the arguments of a tool call for the text of a prompt. */
export function formatArguments(args: JsonObject): string {
  return JSON.stringify(args);
}
