import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import { JsonObject } from "../../domain/json.ts";
import { PermissionUpdate } from "../../domain/permission.ts";
import type { AnswerRequest } from "../../engine/api.ts";
import { answerCheck, type CheckRequest } from "../check-answer.ts";
import { defineTool, type ToolCall, type ToolDeps } from "../define.ts";
import { SessionId } from "../prompt.ts";
import { viewSession, type SessionView } from "../session-view.ts";
import { WaitMs, waitWithin } from "../waiting.ts";

const WAIT_MS = 20_000;
const MAX_EVENTS = 200;
const MAX_BYTES = 32_768;

const Input = z.strictObject({
  action: z.enum(["poll", "respond_permission"]),
  sessionId: SessionId,
  cursor: z.int().min(0).exactOptional().describe("nextCursor of the answer before. Default: 1, the beginning"),
  waitMs: WaitMs.exactOptional().describe("ms to wait for news. Default: 20000; 0 is at once"),
  until: z
    .enum(["news", "event", "end"])
    .exactOptional()
    .describe(
      "what ends the wait: news (the turn ended or something is asked), any event, or only the end. Default: news",
    ),
  maxEvents: z
    .int()
    .min(1)
    .max(1_000)
    .exactOptional()
    .describe(`events in the answer. Default: ${String(MAX_EVENTS)}`),
  maxBytes: z
    .int()
    .min(2_048)
    .max(1_048_576)
    .exactOptional()
    .describe(`size of the answer. Default: ${String(MAX_BYTES)}`),
  requestId: z.string().min(1).max(200).exactOptional().describe("from actions[], for respond_permission"),
  decision: z.enum(["allow", "deny", "allow_for_session"]).exactOptional().describe("for respond_permission"),
  denyMessage: z
    .string()
    .min(1)
    .max(20_000)
    .exactOptional()
    .describe("with deny: tells Claude Code why. Default: none"),
  interrupt: z.boolean().exactOptional().describe("with deny: also end the turn. Default: false"),
  permissionOptions: z
    .strictObject({
      updatedInput: JsonObject.exactOptional(),
      updatedPermissions: z.array(PermissionUpdate).max(100).exactOptional(),
    })
    .exactOptional(),
});
type Input = z.infer<typeof Input>;

/** The six forms of a rule change would be a third of all that is listed; a caller copies them from `suggestions`. */
const PERMISSION_OPTIONS: JsonObject = {
  type: "object",
  properties: {
    updatedInput: { type: "object", description: "run the tool with this input instead. Default: as asked" },
    updatedPermissions: {
      type: "array",
      items: { type: "object" },
      description: "rule changes for the session, taken from suggestions of the action. Default: []",
    },
  },
  description: "with decision allow. Default: {}",
};

/** The fields that make an answer to a request; a poll that has one was meant to be an answer. */
const ANSWER_FIELDS = ["requestId", "decision", "denyMessage", "interrupt", "permissionOptions"] as const;

/** Tells what happened and what is asked; and takes the answers. */
export const claudeCodeCheck = defineTool({
  name: "claude_code_check",
  title: "Check on Claude Code",
  description:
    "Wait for news of a session and read its events from cursor (action poll), or answer a request of actions[] and wait for what comes of it (action respond_permission). A question (AskUserQuestion) is answered with allow and permissionOptions.updatedInput {...input, answers: {[question]: label}}. result is there once no turn runs.",
  input: Input,
  advertised: { permissionOptions: PERMISSION_OPTIONS },
  output: z.looseObject({
    sessionId: z.string().optional(),
    status: z.string().optional(),
    events: z.array(z.looseObject({})).optional(),
    nextCursor: z.int().optional(),
    actions: z.array(z.looseObject({})).optional(),
    result: z.looseObject({}).optional(),
  }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
  meta: { "anthropic/alwaysLoad": true },
  async handle(args, call, deps) {
    const view = viewSession(args.sessionId, call, deps);
    const request = {
      cursor: args.cursor ?? 1,
      waitMs: waitWithin(args.waitMs, WAIT_MS, deps.limits),
      until: args.until ?? "news",
      maxEvents: args.maxEvents ?? MAX_EVENTS,
      maxBytes: args.maxBytes ?? MAX_BYTES,
    };
    if (args.action === "respond_permission") {
      const answered = await respond(view, args, call, deps);
      return { answer: await answerCheck(view, { ...request, ...answered }, call, deps) };
    }
    const stray = ANSWER_FIELDS.find((field) => args[field] !== undefined && args[field] !== false);
    if (stray !== undefined) throw invalidArgument(stray, "is only for action respond_permission.");
    return { answer: await answerCheck(view, request, call, deps) };
  },
});

/** Gives the answer, and says where the caller reads on. */
async function respond(view: SessionView, args: Input, call: ToolCall, deps: ToolDeps): Promise<Partial<CheckRequest>> {
  const answer = answerOf(args);
  const before = await view.record();
  const { cursor } = await deps.engine.answer(call.principal, view.id, answer);
  const { state } = await view.record();
  const ask = before.state.asks.find(({ requestId }) => requestId === answer.requestId);
  return {
    // Who answers a request has read up to it; the log of hours is not sent again for want of a cursor.
    ...(args.cursor === undefined && { cursor: ask ? ask.eventId + 1 : cursor }),
    // What else is asked is to be answered, not waited for.
    ...(state.asks.length > 0 && { waitMs: 0 }),
  };
}

function answerOf(args: Input): AnswerRequest {
  const { requestId, decision, denyMessage, interrupt, permissionOptions } = args;
  if (requestId === undefined) throw invalidArgument("requestId", "is required to respond; see actions[] of a poll.");
  if (decision === undefined) throw invalidArgument("decision", "is required: one of allow, deny, allow_for_session.");
  const forDeny = denyMessage === undefined ? interrupt && "interrupt" : "denyMessage";
  if (decision !== "deny" && forDeny) throw invalidArgument(forDeny, "goes only with decision deny.");
  if (decision !== "allow" && permissionOptions !== undefined) {
    throw invalidArgument("permissionOptions", "goes only with decision allow.");
  }
  return {
    requestId,
    decision,
    by: "caller",
    ...(denyMessage !== undefined && { denyMessage }),
    ...(interrupt && { interrupt }),
    ...permissionOptions,
  };
}
