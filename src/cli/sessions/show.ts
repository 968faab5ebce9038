import { requestOf } from "../../domain/event.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { OpenRequest } from "../../domain/permission.ts";
import { windowName, type PlanLimit } from "../../domain/plan.ts";
import { limitFields, waitingText } from "../../domain/standstill.ts";
import type { Receipt } from "../../domain/receipt.ts";
import type { Verification } from "../../domain/verification.ts";
import { oneId, readArguments } from "./arguments.ts";
import { receiptText, verificationText } from "./evidence.ts";
import { summary } from "./rows.ts";
import { readEvent, findSession, readFirstPrompt, withStore, type SessionRecord, type Store } from "./store.ts";
import {
  count,
  duration,
  shortPath,
  stripControls,
  isTurnAbandoned,
  isoTime,
  oneLine,
  roughDuration,
  statusWord,
  callSubject,
  usd,
  jsonLine,
} from "./text-format.ts";

/** Maximum length of the prompt, characters. */
const MAX_PROMPT = 300;
/** Maximum length of a command, characters. */
const MAX_COMMAND = 100;

type EndOfTurn = Extract<StoredEvent, { type: "turn.ended" }>;

/** A session, with facts from its log. */
interface Summary {
  readonly record: SessionRecord;
  readonly prompt: string;
  readonly requests: readonly { readonly request: OpenRequest; readonly about: string }[];
  readonly ended: EndOfTurn | undefined;
  readonly receipt: Receipt | undefined;
  readonly verification: Verification | undefined;
  /** Last text of Claude Code, then messages of the server about the end of the turn. */
  readonly result: string;
}

/** Prints the facts of a session. */
export async function show(argv: string[]): Promise<number> {
  const { positionals, values } = readArguments("sessions show", argv, {
    options: { json: { type: "boolean" } },
    words: "an id",
  });
  const id = oneId("sessions show", positionals);
  const shown = await withStore(values, async (store) => summarize(store, await findSession(store, id)));
  process.stdout.write(values.json === true ? inJson(shown) : inWords(shown, Date.now()));
  return 0;
}

async function summarize(store: Store, record: SessionRecord): Promise<Summary> {
  const { id, state } = record;
  const requests = state.requests.map(async (request) => {
    const asked = requestOf(await readEvent(store, id, request.eventId));
    return { request, about: asked ? callSubject(asked.input) : "" };
  });
  const last = state.turn ? undefined : await readEvent(store, id, state.lastTurnEventId);
  const ended = last?.type === "turn.ended" ? last : undefined;
  return {
    record,
    prompt: await readFirstPrompt(store, id),
    requests: await Promise.all(requests),
    ended,
    ...(await readEvidence(store, id, ended)),
    result: ended ? await readResult(store, id, ended) : "",
  };
}

async function readEvidence(
  store: Store,
  id: string,
  ended: EndOfTurn | undefined,
): Promise<Pick<Summary, "receipt" | "verification">> {
  const seen = await readEvent(store, id, ended?.data.receiptEventId);
  const checked = await readEvent(store, id, ended?.data.verificationEventId);
  return {
    receipt: seen?.type === "turn.receipt" ? seen.data.receipt : undefined,
    verification: checked?.type === "verification.ended" ? checked.data.verification : undefined,
  };
}

async function readResult(store: Store, id: string, { data }: EndOfTurn): Promise<string> {
  const event = await readEvent(store, id, data.resultEventId);
  const said = event?.type === "message" ? event.data.message["result"] : undefined;
  return [said, data.message, ...(data.warnings ?? [])]
    .filter((text) => typeof text === "string" && text !== "")
    .join("\n\n");
}

function inJson({ ended, prompt, receipt, record, requests, result, verification }: Summary): string {
  const { background, process, queue } = record.state;
  const answer = {
    ...summary(record),
    prompt,
    events: record.state.lastEventId,
    process,
    requests: requests.map(({ about, request }) => ({
      requestId: request.requestId,
      toolName: request.toolName,
      about,
      createdAt: isoTime(request.createdAt),
      expiresAt: isoTime(request.expiresAt),
    })),
    promptsWaiting: queue.length,
    promptsHeld: queue.filter(({ held }) => held).length,
    background,
    ...(ended && { result: endFields(ended, result) }),
    ...(verification && { verification }),
    ...(receipt && { receipt }),
  };
  return jsonLine(answer);
}

function endFields({ at, data: { errorSubtype, limit, outcome } }: EndOfTurn, text: string) {
  const why = { ...(errorSubtype !== undefined && { errorSubtype }), ...limitFields(limit) };
  return { text, outcome, ...why, endedAt: isoTime(at) };
}

function inWords(shown: Summary, now: number): string {
  const { ended, prompt, receipt, record, requests, result, verification } = shown;
  const facts = factsOf(record, prompt, now).filter(([, value]) => value !== "");
  const lines = facts.map(([name, value]) => `${name.padEnd(12)}${value}`);
  if (requests.length > 0) lines.push("", "Open requests:", ...requests.map((each) => requestLine(each, now)));
  if (ended) {
    const { durationMs, limit, outcome, numTurns } = ended.data;
    lines.push("", `Last turn: ${outcome}, ${count(numTurns, "model call")} in ${duration(durationMs)}`);
    if (limit) lines.push(limitText(limit));
    if (verification) lines.push(verificationText(verification, shortCode));
    if (receipt) lines.push(receiptText(receipt, shortCode));
    if (result !== "") lines.push("", stripControls(result).trimEnd());
  }
  return `${lines.join("\n")}\n`;
}

function limitText(limit: PlanLimit): string {
  const { resetsAt = "at an unknown time" } = limitFields(limit);
  return `Limit of the ${oneLine(windowName(limit.window), MAX_COMMAND)}, resets ${resetsAt}`;
}

function shortCode(text: string): string {
  return oneLine(text, MAX_COMMAND);
}

function factsOf(record: SessionRecord, prompt: string, now: number): [string, string][] {
  const { createdAt, id, spec, state, title, updatedAt } = record;
  const { permissionMode, ...rest } = summary(record);
  return [
    ["Session", id],
    ["Status", statusText(record)],
    ["Title", oneLine(title ?? "", MAX_PROMPT)],
    ["Prompt", oneLine(prompt, MAX_PROMPT)],
    ["Folder", shortPath(spec.cwd, Number.MAX_SAFE_INTEGER)],
    ["Model", oneLine(rest.model ?? "", MAX_PROMPT)],
    ["Permissions", oneLine(permissionMode, MAX_PROMPT)],
    ["Opened", `${isoTime(createdAt)}, ${roughDuration(now - createdAt)} ago`],
    ["Changed", `${isoTime(updatedAt)}, ${roughDuration(now - updatedAt)} ago`],
    ["Totals", `${count(state.totals.turns, "model call")}, ${usd(state.totals.costUsd)}`],
    ["Log", count(state.lastEventId, "event")],
    ["Process", processText(record)],
    ["Waiting", queueText(record)],
    ["Background", oneLine(state.background.map(({ description }) => description).join(", "), MAX_PROMPT)],
  ];
}

function statusText(record: SessionRecord): string {
  const { closed } = record.state;
  if (record.unreadable) return `${statusWord(record)}: the stored data cannot be read: ${record.unreadable.why}`;
  const why = closed?.message === undefined ? "" : `: ${oneLine(closed.message, MAX_PROMPT)}`;
  if (closed) return `${statusWord(record)}, by ${oneLine(closed.by, MAX_PROMPT)}${why}`;
  const waits = oneLine(waitingText(record.state), MAX_PROMPT);
  if (!isTurnAbandoned(record)) return waits === "" ? statusWord(record) : `${statusWord(record)}: ${waits}`;
  const next = record.state.waiting ? `takes it over: it ${waits}` : "that reads it records it as lost";
  return `abandoned: the server that ran the turn is gone. The next server ${next}`;
}

/** The recorded process may be gone if no server watches it. */
function processText({ owner, state }: SessionRecord): string {
  const { process } = state;
  if (process.phase === "none") return `none (${String(state.processCount)} so far)`;
  const pid = process.pid === undefined ? "" : `, pid ${String(process.pid)}`;
  return owner?.alive === true ? `${process.phase}${pid}` : "none: it ended with its server";
}

function queueText({ state }: SessionRecord): string {
  if (state.queue.length === 0) return "";
  const held = state.queue.filter((prompt) => prompt.held).length;
  return count(state.queue.length, "prompt") + (held > 0 ? `, ${String(held)} held until released` : "");
}

function requestLine({ about, request }: Summary["requests"][number], now: number): string {
  const left = request.expiresAt - now;
  const due = left > 0 ? `is denied in ${roughDuration(left)}` : "is overdue";
  return `  ${request.requestId}  ${oneLine(`${request.toolName} ${about}`, MAX_PROMPT)} (${due})`;
}
