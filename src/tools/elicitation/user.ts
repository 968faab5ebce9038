import { isWithin } from "../../domain/approvals/risk.ts";
import { CALLER, USER } from "../../domain/approvals/answer-source.ts";
import { AppError } from "../../domain/error.ts";
import { type OpenRequest } from "../../domain/permission.ts";
import { requestOf } from "../../domain/event.ts";
import { uncheckedFor } from "../../engine/policy/unchecked.ts";
import type { PendingRequest } from "../../view/pending-request.ts";
import type { ToolCall, ToolDeps } from "../define.ts";
import type { ReadableSession } from "../readable-session.ts";
import { readForm, buildForm, type Verdict } from "./form.ts";
import type { Form, FormAnswer, RequestLink, RequestLinks } from "./needs-input.ts";

/** Approver `user`: shows forms to the person at the client, and takes their answers. */

export interface FormContext {
  readonly call: ToolCall;
  readonly deps: ToolDeps;
}

/** True if a form in this call can give an answer. Without scope `approve` a dialog would be an empty promise. */
export function canShowForms({ call: { client, scopes }, deps: { approvalChain } }: FormContext): boolean {
  return client.elicitation !== false && scopes.includes("approve") && approvalChain.includes(USER);
}

/**
 * True if a form for this request can give an answer. At an unattended client, only within `callerApproves`. False while a page
 * shows the request: the user answers there.
 */
export function canAnswerByForm(sessionId: string, open: OpenRequest, { call, deps }: FormContext): boolean {
  const { requestId } = open;
  if (!isUserRequest(open) || deps.links?.isOpen({ sessionId, requestId }) === true) return false;
  const isBound = !call.attended && !call.scopes.includes("decide");
  const level = open.kind === "question" ? "reads" : (open.risk ?? "all");
  return !isBound || (deps.approvalChain.includes(CALLER) && isWithin(level, deps.callerApproves));
}

/** True if the person at a client is the current approver. */
function isUserRequest(open: OpenRequest): boolean {
  return open.approver === USER;
}

/** Returns `undefined` if the log no longer has the request. */
export async function showForm(
  view: ReadableSession,
  open: OpenRequest,
  again: boolean,
  context: FormContext,
): Promise<Form | RequestLink | undefined> {
  const asked = await readPendingRequest(view, open);
  if (!asked) return undefined;
  const { call, deps } = context;
  const { requestId } = open;
  // Counts as read in full: the answers are added to the input of a question and remove nothing.
  const whole = open.kind === "question";
  // Report a delivery only once, although every poll shows the form.
  const isNews = open.deliveredAt === undefined || (whole && !open.seenWhole);
  if (isNews) await deps.engine.delivered(call.principal, view.id, [{ requestId, whole, approver: USER }]);
  const form = await formFor(view, asked, again);
  const { pageMessage: message } = form;
  const links = linksFor(context);
  if (message === undefined || !links) return form;
  return { message, url: links.urlFor(call, { sessionId: view.id, requestId }) };
}

async function formFor(view: ReadableSession, { open, request }: PendingRequest, again: boolean): Promise<Form> {
  const record = await view.record();
  const { spec, title = spec.title } = record;
  return buildForm(
    request,
    { cwd: spec.cwd, title, unchecked: uncheckedFor(request, record) },
    { again, filled: open.filled },
  );
}

/** Returns `undefined` if no console can show requests, or if the client opens no URLs. */
function linksFor({ call, deps }: FormContext): RequestLinks | undefined {
  return call.client.opensUrls === true ? deps.links : undefined;
}

/**
 * - `settled`: answered, by this form or another approver.
 * - `dismissed`: passed to the next approver.
 * - `unattended`: passed on, because no person reads forms of this client.
 * - `begun`: a second form follows.
 * - `opened`: the user has gone to the page of the request, and answers there.
 * - `unclear`: to be asked again.
 * - `late`: not answered yet.
 */
export type FormResult = "settled" | "dismissed" | "unattended" | "begun" | "opened" | "unclear" | "late";

/** Minimum time for a person to read and decline a form, ms. `codex exec` and `copilot -p` decline every form at once. */
const READ_MS = 300;

interface ShownForm {
  readonly requestId: string;
  readonly again: boolean;
  readonly second: boolean;
  /** Time at which the form was shown, ms since the epoch. */
  readonly at: number;
  /** True if the call cannot show a further form. */
  readonly last: boolean;
}

/** True if a program has declined, not a person. If the clock was set back (`tookMs` < 0), counts as a person. */
export function isDeclinedByProgram(
  { action }: FormAnswer,
  { second, tookMs }: { second: boolean; tookMs: number },
): boolean {
  return action === "decline" && !second && tookMs >= 0 && tookMs < READ_MS;
}

export async function takeForm(
  view: ReadableSession,
  shown: ShownForm,
  answer: FormAnswer,
  context: FormContext,
): Promise<FormResult> {
  const { call, deps } = context;
  const { answeredAt = deps.now() } = call;
  const { requestId, second } = shown;
  const { state } = await view.record();
  const open = state.requests.find((each) => each.requestId === requestId);
  const asked = open && (await readPendingRequest(view, open));
  if (!asked) return "settled";
  if (answer.action === "none") return "late";
  const links = answer.action === "accept" ? linksFor(context) : undefined;
  if (links && (await formFor(view, asked, false)).pageMessage !== undefined) {
    links.noteAccepted({ sessionId: view.id, requestId });
    return "opened";
  }
  const filled = second ? open.filled : undefined;
  const decided = isDeclinedByProgram(answer, { second, tookMs: answeredAt - shown.at })
    ? "unattended"
    : readForm(asked.request, answer, { filled, last: shown.last });
  if (decided === "unclear" && !shown.again) return decided;
  return settle(view, requestId, decided === "unclear" ? "dismissed" : decided, context);
}

async function settle(
  view: ReadableSession,
  requestId: string,
  decided: Exclude<Verdict, "unclear"> | "unattended",
  { call, deps }: FormContext,
): Promise<FormResult> {
  const { principal } = call;
  if (typeof decided === "string") {
    if (decided === "unattended") call.client.noteUnattended?.();
    await deps.engine.pass(principal, view.id, { requestId, from: USER, why: decided });
    return decided;
  }
  if ("first" in decided) {
    await deps.engine.fill(principal, view.id, { requestId, from: USER, ...decided.first });
    return "begun";
  }
  try {
    await deps.engine.answer(call, view.id, { ...decided, requestId, by: USER, asPerson: call.attended === true });
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== "PERMISSION_REQUEST_NOT_FOUND") throw error;
  }
  return "settled";
}

/** Interval of reads of a session with an open form, ms. News of the session end a wait earlier. */
const LOOK_MS = 30_000;

/** Resolves when the user is no longer the approver of the request, or when `signal` aborts. */
export async function untilSettled(
  view: ReadableSession,
  requestId: string,
  signal: AbortSignal,
  { call, deps }: FormContext,
): Promise<void> {
  while (!signal.aborted) {
    const { state } = await view.record();
    if (!state.requests.some((open) => open.requestId === requestId && isUserRequest(open))) return;
    const sessions = [{ sessionId: view.id, cursor: state.lastEventId + 1 }];
    await deps.engine.wait(call.principal, { sessions, until: "event", timeoutMs: LOOK_MS, signal });
  }
}

/** Reads an open request in full from the log. */
export async function readPendingRequest(
  view: Pick<ReadableSession, "read">,
  open: OpenRequest,
): Promise<PendingRequest | undefined> {
  const request = requestOf((await view.read(open.eventId, 1)).at(0));
  return request && { open, request };
}
