import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import { Folder, ModelName } from "../../domain/options.ts";
import { answer } from "../../engine/actions/answering.ts";
import { start } from "../../engine/actions/begin.ts";
import { events } from "../../engine/actions/reading.ts";
import { SKILL_BODY } from "../resources/skill.ts";
import { definePrompt, shortWait } from "./define-prompt.ts";

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
  write: ({ agent, cwd, model, skill, task }, { limits, scopes }) => {
    const given = {
      ...(cwd !== undefined && { cwd }),
      ...(model !== undefined && { model }),
      ...(agent !== undefined && { agent }),
    };
    const named = skill === undefined ? "" : `Tell it to use the skill ${JSON.stringify(skill)}.\n`;
    return `Hand this task to Claude Code, follow it to its end and report the outcome to me.

<task>
${task}
</task>

Start it: claude_code ${formatArguments({ prompt: "...", ...given, ...shortWait(limits) })}
${named}${scopes.includes(answer.scope) ? "" : WAITING}
${SKILL_BODY}`;
  },
});

const WAITING =
  "You cannot answer requests here: each entry of actions[] waits for another approver. Tell me about them.\n";

/** Formats the arguments of a tool call for the text of a prompt. */
export function formatArguments(args: JsonObject): string {
  return JSON.stringify(args);
}
