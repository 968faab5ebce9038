import { CALLER } from "../../domain/approvals/answer-source.ts";
import { z } from "zod";
import { AppError } from "../../domain/error.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { SessionOptions } from "../../domain/options.ts";
import type { PermissionMode } from "../../domain/permission.ts";
import { start } from "../../engine/actions/begin.ts";
import { boundOf, mayUseMode } from "../../engine/policy/bound.ts";
import { failureOf, recordBegin } from "../blocking/outcome.ts";
import { followTurn } from "../blocking/follow.ts";
import { readTurn } from "../blocking/ended-turn.ts";
import type { ToolLimits } from "../arguments/wait-limits.ts";
import { correctToolNames } from "../check-options.ts";
import { defineTool, type Answered, type Tool, type ToolCall, type ToolDeps, type ToolOutcome } from "../define.ts";
import { previousRound } from "../elicitation/rounds.ts";
import { resolveFolder, approvalLimits, boundToClient, promptFields } from "../prompt.ts";
import { actingCaller } from "../scope.ts";
import { readEnd, readableSession } from "../readable-session.ts";
import { answerWithTask } from "../turn-answer.ts";
import { answerQuery, REST_SHARE } from "./query-answer.ts";
import { LastMessages } from "./last-messages.ts";
import { DENIES, describeQuery } from "./description.ts";
import { effectiveMode, type ModeGate, type QuerySettings } from "./settings.ts";
import { verifyingLine } from "../../view/verification.ts";
import { MessageStream } from "./stream.ts";

const NAME = "claude_code_query";
const { allowedTools, cwd, disallowedTools, maxTurns, model, permissionMode } = SessionOptions.shape;

const Input = z.strictObject({
  prompt: promptFields.prompt,
  cwd: cwd.exactOptional(),
  maxTurns,
  model,
  appendSystemPrompt: z.string().min(1).exactOptional().describe("text appended to Claude Code's. Default: none"),
  permissionMode: permissionMode.describe("Default: the operator's"),
  allowedTools,
  disallowedTools,
  maxMessages: z
    .int()
    .min(1)
    .max(10_000)
    .exactOptional()
    .describe("maximum number of messages to return, the last ones. Default: the operator's"),
  includeSystemMessages: z.boolean().exactOptional().describe("Default: the operator's"),
});
type Input = z.infer<typeof Input>;

/** Runs a prompt to its end. Streams every message; the answer has the last messages. */
export function claudeCodeQuery(settings: QuerySettings, gate: () => ModeGate): Tool {
  return defineTool({
    name: NAME,
    title: "Query Claude Code",
    description: (limits) => describe(settings, gate(), limits),
    input: Input,
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
    scope: start.scope,
    isQuery: true,
    async handle(args, call, deps) {
      const previous = previousRound(NAME, call);
      const work = StartedQuery.parse(previous?.work ?? (await begin(args, settings, call, deps)));
      const shape = { ...Shape.parse(args), permissionMode: work.permissionMode };
      const rest = async (alone: ToolCall) => follow(work, { shape, settings }, alone, deps);
      const { begun: _, cursor, sessionId, warnings = [], ...known } = work;
      const prompt = { sessionId, cursor, warnings, known, shape };
      const task = await answerWithTask(readableSession(sessionId, call, deps), prompt, { call, deps });
      return task ? { ...task, rest } : rest(call);
    },
    async answerTask({ shape: given, ...turn }, call, deps) {
      const shape = Shape.safeParse(given).data ?? {};
      const { permissionMode: mode = "default" } = shape;
      const view = readableSession(turn.sessionId, call, deps);
      const { bundle, take } = collectMessages({ shape, settings });
      const [prompt] = await view.read(turn.cursor, 1);
      const end = await readTurn(view, turn, take);
      const executionTime = end.at - (prompt?.at ?? end.at);
      const head = { sessionId: view.id, permissionMode: mode, executionTime };
      const query = {
        head,
        bundle,
        left: { why: "ended" as const, end },
        cursor: turn.cursor,
        maxBytes: settings.maxBytes,
      };
      return answered(await answerQuery(query, view, call, deps));
    },
  });
}

/** Arguments that shape the answer, and the mode in force, which the answer names. */
const Shape = Input.pick({ maxMessages: true, includeSystemMessages: true }).strip().extend({
  permissionMode: z.string().exactOptional(),
});

interface Collecting {
  readonly shape: z.infer<typeof Shape>;
  readonly settings: QuerySettings;
}

/** Collects the messages for the answer. `take` returns the message of an event that counts. */
function collectMessages({ settings, shape }: Collecting) {
  const { maxBytes } = settings;
  const most = shape.maxMessages ?? settings.maxMessages;
  const bundle = new LastMessages(most, maxBytes - Math.floor(maxBytes / REST_SHARE));
  const withSystem = shape.includeSystemMessages ?? settings.includeSystemMessages;
  const take = (event: StoredEvent): JsonObject | undefined => {
    if (event.type !== "message" || (!withSystem && event.data.message["type"] === "system")) return undefined;
    bundle.add(event.data.message);
    return event.data.message;
  };
  return { bundle, take };
}

/** Follows a query to its end. */
async function follow(
  work: z.infer<typeof StartedQuery>,
  collecting: Collecting,
  call: ToolCall,
  deps: ToolDeps,
): Promise<ToolOutcome> {
  const { begun, cursor, ...known } = work;
  const view = readableSession(known.sessionId, call, deps);
  const { bundle, take } = collectMessages(collecting);
  const stream = new MessageStream(known.sessionId, call);
  const onEvent = async (event: StoredEvent): Promise<void> => {
    const message = take(event);
    if (message) await stream.send(message, event.at);
    if (event.type === "verification.started") stream.advance(verifyingLine(event.data));
  };
  const recall = (event: StoredEvent): void => {
    const message = take(event);
    if (message) stream.recall(message, event.at);
  };
  const waiting = { tool: NAME, work };
  const following = { cursor, waiting, onEvent, recall, onSilence: () => stream.beat() };
  const left = await followTurn(view, following, call, deps);
  if (left.why === "form") return left;
  if (left.why === "ended" && left.end.data.isError) {
    await stream.fail(failureOf(left.end, await readEnd(view, left.end)), left.end.at);
  }
  const head = { ...known, executionTime: Math.round(performance.now() - begun) };
  const { maxBytes } = collecting.settings;
  const answer = await answerQuery({ head, bundle, left, cursor, maxBytes }, view, call, deps);
  // Ends the process, because no further prompt may come. The session stays.
  await suspend(known.sessionId, call, deps);
  return answered(answer);
}

function answered(answer: JsonObject): Answered {
  return { answer, ...(answer["status"] !== "done" && { outcome: String(answer["status"]) }) };
}

/** State of a query after sending. All fields except `begun` and `cursor` are part of the answer. */
const StartedQuery = z.object({
  begun: z.number(),
  cursor: z.int(),
  sessionId: z.string(),
  permissionMode: z.string(),
  note: z.string().exactOptional(),
  warnings: z.array(z.string()).exactOptional(),
});

async function begin(
  args: Input,
  settings: QuerySettings,
  call: ToolCall,
  deps: ToolDeps,
): Promise<z.infer<typeof StartedQuery>> {
  const begun = performance.now();
  const { mode, note } = chooseMode(args, settings, call, deps);
  const { options, warnings } = correctToolNames({ ...optionsOf(args, settings, deps), permissionMode: mode });
  const limits = { ...approvalLimits(call), ...boundToClient(call), turnMs: settings.maxExecutionMs };
  const prompt = { text: args.prompt, limits, via: NAME };
  const { cursor, sessionId, withheld } = await start.run(actingCaller(call, deps), {
    ...splitOperatorRules(args, options),
    prompt,
  });
  const inMode = mayUseMode(mode, boundOf(deps.callerApproves, call)) ? mode : "default";
  recordBegin(NAME, { sessionId, permissionMode: inMode }, call, deps);
  const all = [...warnings, ...withheld];
  const notes = { ...(note !== undefined && { note }), ...(all.length > 0 && { warnings: all }) };
  return { begun, cursor, sessionId, permissionMode: inMode, ...notes };
}

/** Passes `allowedTools` of the operator separately, because the operator's rules need no approval. */
function splitOperatorRules(args: Input, options: SessionOptions) {
  const { allowedTools: allowed, ...others } = options;
  if (allowed === undefined || args.allowedTools !== undefined) return { options };
  return { options: others, fromOperator: { allowedTools: allowed } };
}

async function suspend(sessionId: string, call: ToolCall, { engine }: ToolDeps): Promise<void> {
  await engine.control(call, sessionId, { do: "suspend" }, CALLER).catch((error: unknown) => {
    // Session deleted meanwhile, or store not writable: the answer is still valid.
    if (!(error instanceof AppError)) throw error;
  });
}

function chooseMode(
  args: Input,
  settings: QuerySettings,
  call: ToolCall,
  { bypass, callerApproves }: ToolDeps,
): { mode: PermissionMode; note?: string } {
  if (args.permissionMode !== undefined) return { mode: args.permissionMode };
  const gate = { allowsBypass: bypass.isAllowed(), bound: boundOf(callerApproves, call) };
  const { mode, why } = effectiveMode(settings.permissionMode, gate);
  return why === undefined ? { mode } : { mode, note: `permissionMode is ${mode}: ${DENIES}. ${why}` };
}

function optionsOf(args: Input, settings: QuerySettings, deps: ToolDeps): SessionOptions {
  const { appendSystemPrompt: append, disallowedTools: denied } = args;
  const { allowedTools: allowed = settings.allowedTools, maxTurns: turns = settings.maxTurns } = args;
  const { model: chosen = settings.model } = args;
  return {
    cwd: resolveFolder(args.cwd ?? settings.cwd, deps),
    ...(turns !== undefined && { maxTurns: turns }),
    ...(chosen !== undefined && { model: chosen }),
    ...(append !== undefined && { systemPrompt: { type: "preset", preset: "claude_code", append } }),
    ...(allowed.length > 0 && { allowedTools: [...allowed] }),
    ...(denied && { disallowedTools: denied }),
  };
}

/** Returns the description with the current defaults of this server. */
function describe(settings: QuerySettings, gate: ModeGate, limits: ToolLimits): string {
  const { mode, why } = effectiveMode(settings.permissionMode, gate);
  return describeQuery(settings, { mode, isReplaced: why !== undefined }, limits);
}
