import { CALLER } from "../../domain/approvals/answer-source.ts";
import { lastCharacters } from "../../domain/last-word.ts";
import type { JsonObject } from "../../domain/json.ts";
import { statusOf, type SessionState } from "../../domain/session.ts";
import { answer as answering } from "../../engine/actions/answering.ts";
import { assembleCheck, type CheckAnswer, type CheckMaterial } from "../../view/check.ts";
import type { ResponseMode } from "../../view/event.ts";
import { selectFields } from "../../view/result.ts";
import { assembleSeveral } from "../../view/several.ts";
import { cutText } from "../../view/size.ts";
import { describeTool, KNOWN_TOOLS } from "../../domain/options/known-tools.ts";
import { readPendingRequest } from "../elicitation/user.ts";
import { waitEliciting, type Awaited, type PlainWait, type Waiting } from "../elicitation/eliciting-wait.ts";
import type { ToolCall, ToolDeps, ToolOutcome } from "../define.ts";
import { readResult, type ReadableSession } from "../readable-session.ts";
import { pollInterval, turnWait, waitFor } from "../waiting.ts";
import { readShown } from "./events.ts";
import type { CheckRequest } from "./request.ts";

/** Answers `claude_code_check`: waits as requested, then reads each session at a single moment. */

export interface Target {
  readonly view: ReadableSession;
  /** Event from which the caller reads on. */
  readonly cursor: number;
  /** First event that counts as news. Default: `cursor`. */
  readonly waitFrom?: number;
}

/** Maximum number of reads for an answer. A request may open between reading and answering; the next poll shows the rest. */
const MAX_READS = 3;

/** Without `several`, a single session is answered alone; otherwise a list, with the id of the session that woke the call. */
interface Checked extends CheckRequest {
  readonly targets: readonly Target[];
  readonly several: boolean;
  /** Set if events end before the first open request, so that a poll from there shows the request as new. */
  readonly beforeRequests?: BeforeRequests;
}

export interface BeforeRequests {
  /** Texts by event id. Their events are left out, because the answer has the texts in `warnings`. */
  readonly warnings: ReadonlyMap<number, string>;
}

export async function answerCheck(
  request: Checked,
  waiting: Waiting,
  call: ToolCall,
  deps: ToolDeps,
): Promise<ToolOutcome> {
  const reading = await Promise.all(request.targets.map(clampCursor));
  const { maxWaitMs: maxMs } = deps.limits;
  const plain: PlainWait = async (among, until, waitMs) =>
    waitUntilShown(among, { ...request, until, waitMs, maxMs }, call);
  const targets = reading.map(({ view, waitFrom }) => ({ view, cursor: waitFrom }));
  const waited = await waitEliciting(plain, { targets, until: request.until }, waiting, { call, deps });
  if ("needsInput" in waited) return waited;
  return { answer: await readCheck(reading, request, waited.woke, { call, deps }) };
}

/** Answers with the present state, without waiting. */
export async function answerNow(request: Checked, call: ToolCall, deps: ToolDeps): Promise<JsonObject> {
  return readCheck(await Promise.all(request.targets.map(clampCursor)), request, undefined, { call, deps });
}

async function readCheck(
  reading: readonly ClampedTarget[],
  request: Checked,
  woke: string | undefined,
  { call, deps }: { call: ToolCall; deps: ToolDeps },
): Promise<JsonObject> {
  // A caller without the scope cannot answer, so the request does not count as delivered and its time limit does not start.
  const canAnswer = call.scopes.includes(answering.scope);
  for (let look = 1; ; look += 1) {
    const looks = await Promise.all(reading.map(async (target) => readSnapshot(target, request, deps)));
    const { answer, shown } = assemble(looks, request, woke);
    const news = looks.map(({ target, state }, index) => ({
      id: target.view.id,
      requests: (shown[index] ?? []).filter((each) => isUndelivered(each, state)),
    }));
    const undelivered = news.filter(({ requests }) => requests.length > 0);
    if (undelivered.length === 0 || !canAnswer || look === MAX_READS || call.signal.aborted) return answer;
    // Time limits of these requests start here, so read again to show them.
    for (const { requests, id } of undelivered) await deps.engine.delivered(call.principal, id, requests);
  }
}

function assemble(looks: readonly Snapshot[], request: CheckRequest & { several: boolean }, woke: string | undefined) {
  const [only] = looks;
  if (request.several || !only) return assembleSeveral(looks, woke, request.maxBytes);
  const { answer, shown } = assembleCheck(only.material, request.maxBytes);
  return { answer, shown: [shown] };
}

interface ClampedTarget extends Target {
  readonly waitFrom: number;
  /** End of the log, if `cursor` was beyond the end. */
  readonly resetTo: number | undefined;
}

/**
 * Moves a cursor beyond the end of the log back to the end. Such a cursor belongs to another session or a lost log; waiting for
 * it would never end.
 */
async function clampCursor({ view, cursor, waitFrom }: Target): Promise<ClampedTarget> {
  const { state } = await view.record();
  const within = Math.min(Math.max(cursor, 1), state.lastEventId + 1);
  return { view, cursor: within, waitFrom: waitFrom ?? within, resetTo: within < cursor ? within : undefined };
}

/** Waits for news. With `until: event`, waits on past events not shown to callers. */
async function waitUntilShown(
  targets: readonly Awaited[],
  { form, maxMs, until, waitMs }: CheckRequest & { readonly maxMs: number },
  call: ToolCall,
): Promise<string | undefined> {
  const deadline = performance.now() + waitMs;
  let waiting = targets;
  let left = waitMs;
  for (;;) {
    const [first, ...rest] = waiting;
    if (!first) return undefined;
    const woke = await waitFor([first, ...rest], { until, timeoutMs: left, maxMs }, call);
    const target = waiting.find(({ view }) => view.id === woke);
    if (!target || until !== "event") return woke;
    const { state } = await target.view.record();
    const range = { from: target.cursor, upTo: state.lastEventId, maxEvents: 1 };
    const { events, next } = await readShown(target.view, range, form, { eventId: null, result: undefined });
    // An idle session ends the wait, unless other sessions are awaited.
    const isOver = !state.turn && waiting.length === 1;
    if (events.length > 0 || isOver || next === target.cursor) return woke;
    waiting = waiting.map((each) => (each === target ? { view: each.view, cursor: next } : each));
    left = Math.ceil(deadline - performance.now());
  }
}

interface Snapshot {
  readonly target: ClampedTarget;
  readonly state: SessionState;
  readonly material: CheckMaterial;
}

async function readSnapshot(
  target: ClampedTarget,
  request: Omit<Checked, "targets">,
  deps: ToolDeps,
): Promise<Snapshot> {
  const { cursor, view } = target;
  const { beforeRequests, form, maxEvents } = request;
  const { include } = form;
  const record = await view.record();
  const { state, unreadable } = record;
  // With several sessions, show a result only if new; otherwise each answer would repeat the result until all sessions have
  // ended.
  const isDue =
    include.result && (!request.several || unreadable !== undefined || (state.lastTurnEventId ?? 0) >= cursor);
  const ended = isDue ? await readResult(view, record) : undefined;
  const result = ended && selectFields(ended, form);
  const asked = include.actions
    ? await Promise.all(state.requests.map(async (open) => (await readPendingRequest(view, open)) ?? []))
    : [];
  const upTo = beforeRequests ? endBeforeRequests(state) : state.lastEventId;
  const read = await readShown(view, { from: cursor, upTo, maxEvents }, form, {
    eventId: state.lastTurnEventId,
    result,
  });
  const cursorResetTo = read.resetTo ?? target.resetTo;
  const material = {
    form,
    head: {
      // Left out in minimal mode: the caller has named the only session.
      ...((request.several || form.mode !== "minimal") && { sessionId: view.id }),
      status: statusOf(state),
      ...turnWait(state, deps.now()),
      ...(form.mode !== "minimal" && pollInterval(state)),
      ...(await readQueuePosition(view.id, state, deps)),
      ...(cursorResetTo !== undefined && { cursorResetTo }),
    },
    tail: { ...tailOf(state, form.mode), ...(await readPartial(view.id, state, deps)) },
    lists: {
      background: state.background,
      ...(include.tools && { availableTools: await availableTools(view, state.lastEventId) }),
    },
    events: read.events.filter(({ id }) => beforeRequests?.warnings.has(id) !== true),
    end: read.next,
    more: read.next <= upTo,
    asked: asked.flat(),
    result,
    resultEventId: state.lastTurnEventId,
    now: deps.now(),
  };
  return { target, state, material };
}

function endBeforeRequests({ lastEventId, requests }: SessionState): number {
  return Math.min(lastEventId, ...requests.map(({ eventId }) => eventId - 1));
}

/** Returns the number of sessions before this session in the queue for a slot. */
async function readQueuePosition(
  sessionId: string,
  { process }: SessionState,
  { engine }: ToolDeps,
): Promise<JsonObject> {
  if (process.phase !== "starting" || !process.waiting) return {};
  const waitingBefore = await engine.waitingBefore(sessionId);
  return waitingBefore === undefined ? {} : { waitingBefore };
}

/** True if the engine does not know yet that the request was shown, or shown in full. */
function isUndelivered({ requestId, whole }: CheckAnswer["shown"][number], { requests }: SessionState): boolean {
  const open = requests.find((request) => request.requestId === requestId);
  if (!open) return false;
  // While another approver has the request, the caller may read it, but no time limit of the caller runs.
  const isUnseen = open.approver === CALLER && open.deliveredAt === undefined;
  return isUnseen || (whole && !open.seenWhole);
}

/** Maximum number of characters of an unfinished text. The end is shown, because only the end is new. */
const PARTIAL_SHOWN = 1_000;

/** Returns the unfinished text of the turn. Not an event: replaced by the finished message. */
async function readPartial(sessionId: string, { turn }: SessionState, { engine }: ToolDeps): Promise<JsonObject> {
  const partial = turn ? await engine.partial(sessionId) : "";
  return partial === "" ? {} : { partial: lastCharacters(partial, PARTIAL_SHOWN) };
}

function tailOf({ closed, lastEventId, lastToolUseId }: SessionState, mode: ResponseMode): JsonObject {
  const cancelled = closed?.reason === "cancelled" && {
    ...(mode !== "minimal" && { cancelledAt: new Date(closed.at).toISOString() }),
    cancelledReason: cutText(closed.message ?? "cancelled", 300),
    cancelledSource: cutText(closed.by, 100),
  };
  // `nextCursor` already says where to read on.
  if (mode === "minimal") return { ...cancelled };
  return { ...cancelled, lastEventId, ...(lastToolUseId !== null && { lastToolUseId: cutText(lastToolUseId, 100) }) };
}

/**
 * Returns the tools reported by Claude Code at its last start, with descriptions. Before the first start, returns all known
 * tools.
 */
export async function availableTools(view: ReadableSession, lastEventId: number): Promise<JsonObject[]> {
  const reported = await reportedTools(view, lastEventId);
  if (!reported) return KNOWN_TOOLS.map((tool) => ({ ...tool }));
  return [...new Map(reported.map(describeTool).map((tool) => [tool.name, { ...tool }])).values()];
}

const PAGE = 200;

/** Searches from the end: every process reports its tools at its start, and the log may be long. */
async function reportedTools(view: ReadableSession, lastEventId: number): Promise<string[] | undefined> {
  for (let end = lastEventId; end > 0; end -= PAGE) {
    const from = Math.max(1, end - PAGE + 1);
    const page = await view.read(from, end - from + 1);
    const init = page.findLast(
      ({ id, ...event }) => id <= end && event.type === "message" && isInit(event.data.message),
    );
    if (init?.type === "message") return namesIn(init.data.message["tools"]);
  }
  return undefined;
}

function isInit({ type, subtype, tools }: JsonObject): boolean {
  return type === "system" && subtype === "init" && Array.isArray(tools);
}

function namesIn(tools: unknown): string[] {
  return Array.isArray(tools) ? tools.filter((name) => typeof name === "string") : [];
}
