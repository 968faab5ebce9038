import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import { AdvancedOptions, SessionOptions } from "../../domain/options.ts";
import { refuseNul } from "../arguments/odd-text.ts";
import { nameTools } from "../catalogue/names.ts";
import { defineTool } from "../define.ts";
import { ADVERTISED_ATTACHMENTS, Attachments, IdempotencyKey, Prompt } from "../prompt.ts";
import { viewSession } from "../session-view.ts";
import { answerTurn } from "../turn-answer.ts";
import { WaitMs, waitWithin } from "../waiting.ts";

const { cwd, ...options } = SessionOptions.shape;

const Input = z.strictObject({
  prompt: Prompt,
  attachments: Attachments,
  cwd: cwd.exactOptional(),
  ...options,
  waitMs: WaitMs.exactOptional().describe("ms to wait for the turn's end or a request. Default: 0"),
  idempotencyKey: IdempotencyKey,
  advanced: AdvancedOptions.exactOptional(),
});

const ADVANCED = Object.keys(AdvancedOptions.shape);

/** Their schemas would be most of what is listed; what is wrong in one is told by name. */
const ADVERTISED: Readonly<Record<string, JsonObject>> = {
  attachments: ADVERTISED_ATTACHMENTS,
  advanced: { type: "object", description: `rarely needed options: ${ADVANCED.join(", ")}. Default: {}` },
  systemPrompt: {
    anyOf: [{ type: "string" }, { type: "object" }],
    description:
      'replaces Claude Code\'s own; {"type":"preset","preset":"claude_code","append":"..."} adds to it. Default: its own',
  },
};

/** Starts a session. Nothing here waits for Claude Code unless the caller says so. */
export const claudeCode = defineTool({
  name: "claude_code",
  title: "Start Claude Code",
  description:
    "Start Claude Code on a task. Returns at once, or with the result if the turn ends within waitMs. It runs on by itself: follow it and answer its requests with claude_code_check, go on with claude_code_reply.",
  input: Input,
  // Seed 001 takes all options flat; listed twice they would cost every model a page of context.
  unlisted: ADVANCED,
  advertised: ADVERTISED,
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  scope: "run",
  meta: { "anthropic/alwaysLoad": true },
  async handle(args, call, deps) {
    const waitMs = waitWithin(args.waitMs, 0, deps.limits);
    const { options: chosen, warnings } = nameTools(sessionOptions(args, deps.defaults.cwd));
    refuseNul(chosen);
    const { attachments, idempotencyKey, prompt: text } = args;
    const prompt = {
      text,
      via: "claude_code",
      ...(attachments && { attachments }),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    };
    const { sessionId, cursor, withheld } = await deps.engine.open(call, { options: chosen, prompt });
    const begun = { cursor, waitMs, warnings: [...warnings, ...withheld] };
    return { answer: await answerTurn(viewSession(sessionId, call, deps), call, begun, deps.diskResume) };
  },
});

/** One option may come flat, in `advanced`, or in both alike. */
function sessionOptions(args: z.infer<typeof Input>, defaultCwd: string): SessionOptions {
  const { prompt: _, attachments: _a, waitMs: _w, idempotencyKey: _k, advanced: nested = {}, ...flat } = args;
  const given = new Map(Object.entries(flat));
  for (const [name, value] of Object.entries(nested)) {
    const beside = given.get(name);
    if (beside !== undefined && !isDeepStrictEqual(beside, value)) {
      throw invalidArgument(`advanced.${name}`, `differs from ${name}, which is given too. Give it once.`);
    }
  }
  return { ...flat, ...nested, cwd: flat.cwd ?? defaultCwd };
}
