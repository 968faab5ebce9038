import type { StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { OUTCOME_WORDS } from "../../domain/turn.ts";
import { lostTypeOf, UNREADABLE, unreadableText } from "../../domain/unreadable.ts";
import { promptsOf, type SessionState, statusOf } from "../../domain/session.ts";
import { waitingText } from "../../domain/standstill.ts";
import type { SessionRecord } from "../../engine/ports.ts";
import { requestKey } from "../../tools/elicitation/rounds.ts";
import type { NeedsInput } from "../../tools/elicitation/needs-input.ts";
import { canAnswerByForm, canShowForms, showForm } from "../../tools/elicitation/user.ts";
import type { Tool, ToolCall, ToolDeps } from "../../tools/define.ts";
import { replyWith, type TaskHead, type ToolReply } from "../../tools/errors.ts";
import { presentUnreadable } from "../../view/result.ts";
import { oneLine } from "../../view/size.ts";
import type { EndOfTurn, ReadableSession } from "../../tools/readable-session.ts";
import { answerEnd } from "../../tools/turn-answer.ts";
import { readNews } from "../../tools/waiting.ts";

/** Presents a prompt and its outcome as a task of the Tasks extension, derived from the log alone. */

export type PromptEvent = Extract<StoredEvent, { type: "prompt.queued" }>;

export interface Task extends TaskHead {
  /** Forms for the user, by keys that are unique among all requests of the task. */
  readonly forms?: NeedsInput["requests"];
  /** Answer of the tool, if the task is completed. */
  readonly reply?: ToolReply;
}

export interface FoundTask {
  readonly taskId: string;
  readonly view: ReadableSession;
  readonly prompt: PromptEvent;
  /** Builds the answer of the tool that sent the prompt. Default: the answer of `claude_code`. */
  readonly answerTask?: Tool["answerTask"];
  /** Arguments that shape that answer. */
  readonly shape?: JsonObject | undefined;
}

interface TaskContext {
  readonly call: ToolCall;
  readonly deps: ToolDeps;
}

export async function describeTask(found: FoundTask, reading: TaskContext): Promise<Task> {
  const { prompt, view } = found;
  const record = await view.record();
  const { state } = record;
  if (isRunning(state, prompt)) return describeRunning(found, state, reading);
  if (!state.closed && isQueued(state, prompt)) return describeQueued(found, state);
  const end = await findEnd(view, prompt, state);
  if (end === UNREADABLE || (!end && record.unreadable)) return describeUnreadable(found, record);
  return end?.type === "turn.ended" ? describeEnd(found, end, reading) : describeNeverRun(found, end);
}

export function isRunning(state: SessionState, { data }: PromptEvent): boolean {
  return promptsOf(state).some(({ promptId }) => promptId === data.promptId);
}

function isQueued({ queue }: SessionState, { data }: PromptEvent): boolean {
  return queue.some(({ promptId }) => promptId === data.promptId);
}

const isoTime = (time: number): string => new Date(time).toISOString();

function headOf({ prompt, taskId, view }: FoundTask, lastAt: number): Omit<TaskHead, "status" | "statusMessage"> {
  return { taskId, sessionId: view.id, createdAt: isoTime(prompt.at), lastUpdatedAt: isoTime(lastAt) };
}

async function describeRunning(found: FoundTask, state: SessionState, reading: TaskContext): Promise<Task> {
  const { prompt, view } = found;
  const forms = await showForms(view, state, reading);
  const [last] = await view.read(state.lastEventId, 1);
  const { line = "Claude Code is at work" } = await readNews(view, prompt.id);
  const waits = waitingText(state);
  const statusMessage = waits === "" ? line : `The turn ${waits}.`;
  const head = { ...headOf(found, last?.at ?? prompt.at), statusMessage };
  return Object.keys(forms).length > 0 ? { ...head, status: "input_required", forms } : { ...head, status: "working" };
}

/** Builds the forms of open requests that wait for the user at this client. Each request counts as shown. */
async function showForms(
  view: ReadableSession,
  { requests }: SessionState,
  reading: TaskContext,
): Promise<NeedsInput["requests"]> {
  const forms: Record<string, NeedsInput["requests"][string]> = {};
  if (!canShowForms(reading)) return forms;
  for (const open of requests.filter((each) => canAnswerByForm(view.id, each, reading))) {
    const form = await showForm(view, open, false, reading);
    if (form) forms[requestKey(open.requestId, open.filled !== undefined)] = form;
  }
  return forms;
}

const STOPPED = "the turn before it was stopped or lost, or a limit kept it back";
const RELEASE = "Run or drop it with claude_code_session (release_queue, drop_queue).";

function describeQueued(found: FoundTask, state: SessionState): Task {
  const { queue } = state;
  const { promptId } = found.prompt.data;
  const place = queue.findIndex((each) => each.promptId === promptId);
  const isHeld = queue[place]?.held === true;
  const before = place === 0 ? "the current turn" : `the current turn and ${String(place)} more`;
  const limit = waitingText(state);
  const why = limit === "" ? STOPPED : `the queue ${limit}`;
  const statusMessage = isHeld ? `Held: ${why}. ${RELEASE}` : `Waits for ${before}.`;
  return { ...headOf(found, found.prompt.at), status: "working", statusMessage };
}

async function describeEnd(found: FoundTask, end: EndOfTurn, { call, deps }: TaskContext): Promise<Task> {
  const head = headOf(found, end.at);
  const { errorSubtype, message, outcome, warnings = [] } = end.data;
  // Cancelled by a caller. A turn ended by the server or by a time limit has a result instead, with the reason.
  if (outcome === "cancelled" || errorSubtype === "interrupted") {
    return { ...head, status: "cancelled", statusMessage: oneLine(message ?? "It was interrupted.", MAX_STATUS) };
  }
  const { answerTask, prompt, shape = {}, view } = found;
  const ended = { sessionId: view.id, cursor: prompt.id, endEventId: end.id, shape };
  const reply = replyWith(await (answerTask?.(ended, call, deps) ?? answerEnd(view, end, { call, deps })));
  const done = ["Done", ...warnings].join(" | ");
  const statusMessage =
    outcome === "done" ? oneLine(done, MAX_STATUS) : oneLine(message ?? `It ${OUTCOME_WORDS[outcome]}.`, MAX_STATUS);
  return { ...head, status: "completed", statusMessage, reply };
}

const MAX_STATUS = 200;

function describeUnreadable(found: FoundTask, { state, unreadable, updatedAt }: SessionRecord): Task {
  const why = unreadable ? unreadableText(unreadable) : "The end of the turn cannot be read.";
  const result = presentUnreadable(found.view.id, state, why);
  const answer = { sessionId: found.view.id, status: statusOf(state), nextCursor: state.lastEventId + 1, result };
  const statusMessage = oneLine(why, MAX_STATUS);
  return { ...headOf(found, updatedAt), status: "completed", statusMessage, reply: replyWith({ answer }) };
}

function describeNeverRun(found: FoundTask, why: Exclude<PromptEnd, EndOfTurn> | undefined): Task {
  const reason =
    why?.type === "session.closed" ? `the session was ${why.data.reason}` : (why?.data.reason ?? "dropped");
  const statusMessage = `The prompt was not run: ${reason}.`;
  return { ...headOf(found, why?.at ?? found.prompt.at), status: "cancelled", statusMessage };
}

type PromptEnd = EndOfTurn | Extract<StoredEvent, { type: "prompt.dropped" | "session.closed" }>;

const PAGE = 256;

/** Finds the outcome of a prompt that neither runs nor is queued. */
async function findEnd(
  view: ReadableSession,
  prompt: PromptEvent,
  state: SessionState,
): Promise<PromptEnd | typeof UNREADABLE | undefined> {
  const { promptId } = prompt.data;
  // Usually the last turn, whose id is the id of its first prompt.
  const [last] = state.lastTurnEventId === null ? [] : await view.read(state.lastTurnEventId, 1);
  if (last?.type === "turn.ended" && last.data.turnId === promptId) return last;
  const search = new EndSearch(promptId);
  for (let next = prompt.id; ;) {
    const page = await view.read(next, PAGE);
    for (const event of page) if (search.isOver(event)) return search.end;
    const read = page.at(-1);
    if (!read || page.length < PAGE) return search.end;
    next = read.id + 1;
  }
}

/** Searches the events from the prompt on, in order, for the end of the prompt. */
class EndSearch {
  over: PromptEnd | undefined;
  readonly #promptId: string;
  #runs = false;

  constructor(promptId: string) {
    this.#promptId = promptId;
  }

  /** End of the prompt. `UNREADABLE` if a turn has begun, but no end was found. */
  get end(): PromptEnd | typeof UNREADABLE | undefined {
    return this.over ?? (this.#runs ? UNREADABLE : undefined);
  }

  /**
   * Returns true if no further event can change the result. One turn runs at a time, so the next end belongs to the prompt's
   * turn.
   */
  isOver(event: StoredEvent): boolean {
    const begins = this.#isBeginning(event);
    if (begins) {
      this.#runs = true;
      // Forgets the end of a lost turn, because its rerun follows directly.
      this.over = undefined;
    }
    if (this.over) return true;
    if (event.type === "turn.ended" && this.#runs) this.over = event;
    if (this.#runs && lostTypeOf(event) === "turn.ended") return true;
    const isDropped = event.type === "prompt.dropped" && event.data.promptId === this.#promptId;
    if (isDropped || (event.type === "session.closed" && !this.#runs)) this.over = event;
    return false;
  }

  #isBeginning({ data, type }: StoredEvent): boolean {
    if (type === "turn.started") return data.promptIds.includes(this.#promptId) || this.#isRerun(data.turnId);
    return type === "prompt.steered" && data.promptId === this.#promptId;
  }

  /** True for a rerun of the turn that the prompt had joined. */
  #isRerun(turnId: string): boolean {
    return this.over?.type === "turn.ended" && turnId === `${this.over.data.turnId}.rerun`;
  }
}
