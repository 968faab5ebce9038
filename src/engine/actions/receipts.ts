import { z } from "zod";
import { type AppError, invalidArgument } from "../../domain/error.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { Receipt } from "../../domain/receipt.ts";
import type { SessionRecord } from "../ports.ts";
import { buildReceipt } from "../receipt/build-receipt.ts";
import { TurnReader } from "../receipt/turn-reader.ts";
import { defineAction, type ActingCaller } from "./action.ts";
import { SessionId } from "./input.ts";

/** Shows what the server saw of a turn. */

/** Returns the receipt of a turn by its number, by default of the last turn that has ended. */
export const receipt = defineAction({
  name: "receipt",
  scope: "read",
  fields: { sessionId: SessionId, turn: z.int().min(1).exactOptional() },
  run: async (acting, { sessionId, turn }) => {
    const record = await acting.engine.get(acting.caller.principal, sessionId);
    const { lastTurnEventId, turnCount } = record.state;
    if (turn !== undefined && turnCount !== undefined && turn > turnCount) throw missing(turn, turnCount);
    if (lastTurnEventId === null) throw none(turn);
    const found =
      turn === undefined
        ? ((await recordedAt(acting, sessionId, lastTurnEventId)) ??
          (await search(acting, record, { endEventId: lastTurnEventId })))
        : await search(acting, record, { number: turn });
    if (!found) throw none(turn);
    return found;
  },
});

function missing(turn: number, turnCount: number): AppError {
  const had = turnCount === 1 ? "1 turn" : `${String(turnCount)} turns`;
  return invalidArgument(
    "turn",
    `there is no turn ${String(turn)}: the session has had ${had}. Leave it out for the last.`,
  );
}

function none(turn: number | undefined): AppError {
  const which = turn === undefined ? "no turn of the session has ended" : `turn ${String(turn)} has not ended`;
  return invalidArgument("turn", `${which}. Wait for its end with claude_code_check (until: end).`);
}

/** Returns the receipt of the turn that ended with event `endEventId`; `undefined` if the turn has none. */
async function recordedAt(acting: ActingCaller, sessionId: string, endEventId: number): Promise<Receipt | undefined> {
  const read = async (id: number) => (await acting.engine.read(acting.caller.principal, sessionId, id, 1)).at(0);
  const ended = await read(endEventId);
  const id = ended?.type === "turn.ended" ? ended.data.receiptEventId : undefined;
  const event = id === undefined ? undefined : await read(id);
  return event?.type === "turn.receipt" ? event.data.receipt : undefined;
}

/** Turn to look for: by `number` in the session, or by the event of the end. */
type Wanted = { readonly number: number } | { readonly endEventId: number };

/**
 * Reads the log from the beginning. A turn without the event `turn.receipt` has ended at once: the events of the turn tell what
 * tools reported.
 */
async function search(acting: ActingCaller, record: SessionRecord, wanted: Wanted): Promise<Receipt | undefined> {
  const { cwd, additionalDirectories = [] } = record.spec;
  const places = { cwd: [cwd], folders: additionalDirectories };
  let number = 0;
  let turn: { readonly id: string; readonly reader: TurnReader } | undefined;
  for await (const event of eventsOf(acting, record)) {
    if (event.type === "turn.receipt" && "number" in wanted && event.data.receipt.turn === wanted.number) {
      return event.data.receipt;
    }
    if (event.type === "turn.started") {
      number += 1;
      turn = { id: event.data.turnId, reader: new TurnReader({ background: 0 }) };
    }
    turn?.reader.take(event);
    if (event.type !== "turn.ended" || event.data.turnId !== turn?.id) continue;
    const isWanted = "number" in wanted ? number === wanted.number : event.id === wanted.endEventId;
    if (!isWanted) continue;
    const facts = turn.reader.done();
    return buildReceipt({ turn: number, facts, ...places, comparison: undefined, why: WHY, others: 0, between: 0 });
  }
  return undefined;
}

const WHY =
  "The server did not look at the folders at the end of this turn, because the turn ended at once or receipts are off.";

const PAGE = 500;

async function* eventsOf(
  { caller: { principal }, engine }: ActingCaller,
  { id, state }: SessionRecord,
): AsyncGenerator<StoredEvent> {
  for (let from = 1; from <= state.lastEventId; from += PAGE) yield* await engine.read(principal, id, from, PAGE);
}
