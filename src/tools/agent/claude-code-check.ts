import { z } from "zod";
import { invalidArgument } from "../../domain/error.ts";
import type { JsonObject } from "../../domain/json.ts";
import { answerCheck, type Target } from "../check/answer.ts";
import { answerPage } from "../check/one-event.ts";
import { answer } from "../../engine/actions/answering.ts";
import { events } from "../../engine/actions/reading.ts";
import { MAX_BYTES, MAX_EVENTS, MaxBytes, PollOptions, readRequest } from "../check/request.ts";
import { respond, Responded } from "../check/respond.ts";
import { defineTool, type ToolCall, type ToolDeps, type ToolOutcome } from "../define.ts";
import { previousRound } from "../elicitation/rounds.ts";
import { jsonBytes } from "../../view/size.ts";
import { readableSession } from "../readable-session.ts";
import { WaitMs } from "../waiting.ts";

const NAME = "claude_code_check";
const { answers, decision, denyMessage, interrupt, requestId, updatedInput, updatedPermissions } = answer.fields;
const SessionId = answer.fields.sessionId;
const Cursor = z.int().min(0);
const MAX_SESSIONS = 50;

const Input = z.strictObject({
  action: z.enum(["poll", "respond_permission", "answer_question"]),
  sessionId: SessionId.exactOptional().describe("Default: none"),
  cursor: Cursor.exactOptional().describe("last nextCursor. Default: 1"),
  sessions: z
    .array(z.strictObject({ sessionId: SessionId, cursor: Cursor.exactOptional() }))
    .min(1)
    .max(MAX_SESSIONS)
    .exactOptional(),
  waitMs: WaitMs.exactOptional().describe("Default: 20000"),
  until: z.enum(["news", "event", "end"]).exactOptional().describe("end ignores requests. Default: news"),
  responseMode: z.enum(["minimal", "delta_compact", "full"]).exactOptional().describe("Default: minimal"),
  maxEvents: z
    .int()
    .min(1)
    .max(1_000)
    .exactOptional()
    .describe(`Default: ${String(MAX_EVENTS)}`),
  maxBytes: MaxBytes.exactOptional().describe(`Default: ${String(MAX_BYTES)}`),
  pollOptions: PollOptions.exactOptional(),
  eventId: z.int().min(1).exactOptional().describe("one event, whole (inputEventId). Default: none"),
  offset: z.int().min(0).exactOptional(),
  limit: z.int().min(1).exactOptional(),
  requestId: requestId.exactOptional().describe("Default: none"),
  decision: decision.exactOptional().describe("Default: none"),
  denyMessage: denyMessage.describe("Default: none"),
  interrupt: interrupt.describe("on deny, end the turn. Default: false"),
  permissionOptions: z.strictObject({ updatedInput, updatedPermissions }).exactOptional(),
  answers,
});
type Input = z.infer<typeof Input>;

/** Short forms: full schemas of these parameters would be a third of the listing. Error messages name a wrong field. */
const ADVERTISED: Readonly<Record<string, JsonObject>> = {
  sessions: {
    type: "array",
    items: { type: "object", properties: {} },
    description: "[{sessionId, cursor}]. Default: none",
  },
  pollOptions: {
    type: "object",
    properties: {},
    description: "e.g. {includeTools: true}. Default: {}",
  },
  permissionOptions: {
    type: "object",
    properties: {},
    description: "on allow: {updatedInput, updatedPermissions}. Default: {}",
  },
  answers: {
    type: "object",
    properties: {},
    description: "{question: label, [labels] or text}. Default: none",
  },
};

/** Fields of an answer to a request. A poll with any of them was meant as an answer, and is refused. */
const ANSWER_FIELDS = ["requestId", "decision", "denyMessage", "interrupt", "permissionOptions", "answers"] as const;
/** Parameters for reading many events; refused together with `eventId`. */
const MANY_FIELDS = ["sessions", "cursor", "until", "maxEvents", "responseMode", "pollOptions"] as const;

/** Reports events and open requests, and accepts answers to requests. */
export const claudeCodeCheck = defineTool({
  name: NAME,
  title: "Check on Claude Code",
  description: ({ followsTasks }) =>
    `${followsTasks ? "Read the output of sessions, or answer a request; results of tasks come by themselves." : "Poll sessions or answer a request."} poll waits for the turn's end or a request; it returns events from cursor, requests in actions[], and result once no turn runs. respond_permission (answer_question for type question) answers one, then waits too.`,
  input: Input,
  unlisted: ["offset", "limit"],
  advertised: ADVERTISED,
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  scope: { poll: events.scope, respond_permission: answer.scope, answer_question: answer.scope },
  meta: { "anthropic/alwaysLoad": true },
  async handle(args, call, deps) {
    if (args.action !== "poll") return answerThenCheck(args, args.action, call, deps);
    const stray = ANSWER_FIELDS.find((field) => args[field] !== undefined && args[field] !== false);
    if (stray !== undefined) throw invalidArgument(stray, "is only for action respond_permission or answer_question.");
    if (args.eventId !== undefined) return { answer: await readOne(args, args.eventId, call, deps) };
    const paging = (["offset", "limit"] as const).find((field) => args[field] !== undefined);
    if (paging !== undefined) throw invalidArgument(paging, "is only allowed with eventId.");
    const request = readRequest(args, deps.limits);
    const targets = targetsOf(args, call, deps);
    const waiting = { tool: NAME, work: {}, waitMs: request.waitMs };
    return answerCheck({ ...request, targets, several: args.sessions !== undefined }, waiting, call, deps);
  },
});

function targetsOf({ cursor, sessionId, sessions }: Input, call: ToolCall, deps: ToolDeps): Target[] {
  if (sessionId !== undefined && sessions === undefined) {
    return [{ view: readableSession(sessionId, call, deps), cursor: cursor ?? 1 }];
  }
  if (sessions === undefined) throw invalidArgument("sessionId", "is required. Use sessions to poll several.");
  if (sessionId !== undefined)
    throw invalidArgument("sessions", "cannot be combined with sessionId. Name every session in sessions.");
  if (cursor !== undefined)
    throw invalidArgument("cursor", "cannot be combined with sessions. Give each entry its own cursor.");
  const twice = sessions.find((one, index) => sessions.findIndex((other) => other.sessionId === one.sessionId) < index);
  if (twice) throw invalidArgument("sessions", `names ${twice.sessionId} twice. Name each session once.`);
  return sessions.map((each) => ({ view: readableSession(each.sessionId, call, deps), cursor: each.cursor ?? 1 }));
}

function oneSession({ action, sessionId, sessions }: Input): string {
  if (sessions !== undefined)
    throw invalidArgument("sessions", "is only allowed with action poll, and without eventId.");
  if (sessionId === undefined) throw invalidArgument("sessionId", `is required for action ${action}.`);
  return sessionId;
}

async function readOne(args: Input, eventId: number, call: ToolCall, deps: ToolDeps): Promise<JsonObject> {
  const many = MANY_FIELDS.find((field) => args[field] !== undefined);
  if (many !== undefined) throw invalidArgument(many, "cannot be combined with eventId, which reads one event.");
  const view = readableSession(oneSession(args), call, deps);
  const { limit = Number.MAX_SAFE_INTEGER, maxBytes = MAX_BYTES, offset = 0 } = args;
  return answerPage(view, { eventId, offset, limit, maxBytes }, call, deps);
}

type AnswerAction = Exclude<Input["action"], "poll">;

async function answerThenCheck(
  args: Input,
  action: AnswerAction,
  call: ToolCall,
  deps: ToolDeps,
): Promise<ToolOutcome> {
  const { form, ...request } = readRequest(args, deps.limits);
  const view = readableSession(oneSession(args), call, deps);
  const paging = (["eventId", "offset", "limit"] as const).find((field) => args[field] !== undefined);
  if (paging !== undefined) throw invalidArgument(paging, "is only allowed with action poll.");
  const work = previousRound(NAME, call)?.work ?? (await respond(view, { ...args, action }, call, deps));
  const { cursor, isMoreAsked, waitFrom, withheld } = Responded.parse(work);
  // With further requests open, return them at once: the caller has to answer, not to wait.
  const waiting = { tool: NAME, work, waitMs: request.waitMs, ...(isMoreAsked && { left: 0 }) };
  const targets = [{ view, cursor: args.cursor ?? cursor, waitFrom }];
  const answered = args.requestId === undefined ? {} : { answered: args.requestId };
  const checked = { ...request, form: { ...form, ...answered }, targets, several: false };
  if (withheld.length === 0) return answerCheck(checked, waiting, call, deps);
  const extra = { warnings: withheld.slice(0, MAX_WARNINGS) };
  const maxBytes = Math.max(LEAST_BYTES, request.maxBytes - jsonBytes(extra));
  const outcome = await answerCheck({ ...checked, maxBytes }, waiting, call, deps);
  return "needsInput" in outcome ? outcome : { ...outcome, answer: { ...outcome.answer, ...extra } };
}

const MAX_WARNINGS = 3;
/** Minimum size of the answer beside `warnings`, bytes. */
const LEAST_BYTES = 1_024;
