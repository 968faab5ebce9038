import type { StoredEvent } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { WaitUntil } from "../engine/api.ts";
import type { SessionRecord } from "../engine/ports.ts";
import type { ToolCall, ToolDeps } from "./define.ts";
import { unreadableText } from "../domain/unreadable.ts";
import { presentResult, presentUnreadable } from "../view/result.ts";

export interface Wait {
  readonly cursor: number;
  readonly others?: readonly { sessionId: string; cursor: number }[];
  readonly until: WaitUntil;
  readonly timeoutMs: number;
  /** Aborts the wait. Default: the signal of the call. */
  readonly signal?: AbortSignal;
}

/** Session as readable by one caller. */
export interface ReadableSession {
  readonly id: string;
  record(): Promise<SessionRecord>;
  read(from: number, limit: number): Promise<StoredEvent[]>;
  /** Waits for this session and `others`; returns the id of the session with news. */
  wait(request: Wait): Promise<{ woke: string | undefined }>;
}

export function readableSession(
  id: string,
  { principal, signal }: ToolCall,
  { engine, reported }: ToolDeps,
): ReadableSession {
  return {
    id,
    record: () => engine.get(principal, id),
    read: async (from, limit) => {
      const events = await engine.read(principal, id, from, limit);
      reported?.learn(events);
      return events;
    },
    wait: ({ cursor, others = [], until, timeoutMs, signal: own = signal }) =>
      engine.wait(principal, { sessions: [{ sessionId: id, cursor }, ...others], until, timeoutMs, signal: own }),
  };
}

/** Number of events to search for warnings. Warnings come first, at the start of a process. */
const MAX_SEARCHED = 50;

/** Returns the warnings of the process started for the prompt at `cursor`, by event id. */
export async function startWarnings(view: ReadableSession, cursor: number): Promise<ReadonlyMap<number, string>> {
  const events = await view.read(cursor, MAX_SEARCHED);
  return new Map(
    events.flatMap(({ data, id, type }) => (type === "notice" && data.kind === "warning" ? [[id, data.message]] : [])),
  );
}

type ResultSource = Pick<SessionRecord, "state" | "unreadable">;

/** Returns the result of the last turn; `undefined` while a turn runs or before the first has ended. */
export async function readResult(
  view: ReadableSession,
  { state, unreadable }: ResultSource,
): Promise<JsonObject | undefined> {
  if (unreadable) return presentUnreadable(view.id, state, unreadableText(unreadable));
  if (state.turn || state.lastTurnEventId === null) return undefined;
  const [ended] = await view.read(state.lastTurnEventId, 1);
  if (ended?.type === "turn.ended") return readEnd(view, ended);
  const why = ended?.type === "notice" ? ` ${ended.data.message}` : "";
  return presentUnreadable(view.id, state, `The end of the last turn cannot be read.${why}`);
}

export type EndOfTurn = Extract<StoredEvent, { type: "turn.ended" }>;

/** Returns the end of a turn with Claude Code's own result, the receipt and the verification. */
export async function readEnd(view: ReadableSession, { data }: EndOfTurn): Promise<JsonObject> {
  const at = async (id: number | undefined) => (id === undefined ? undefined : (await view.read(id, 1)).at(0));
  const { receiptEventId, resultEventId, verificationEventId } = data;
  const [said, seen, verified] = await Promise.all([at(resultEventId), at(receiptEventId), at(verificationEventId)]);
  return presentResult(view.id, data, said?.type === "message" ? said.data.message : {}, {
    ...(seen?.type === "turn.receipt" && { receipt: seen.data.receipt }),
    ...(verified?.type === "verification.ended" && { verification: verified.data.verification }),
  });
}
