import { z } from "zod";
import { CommandReply } from "../domain/command.ts";
import { SessionPolicy } from "../domain/approvals/session-policy.ts";
import { SessionEvent, type StoredEvent } from "../domain/event.ts";
import { SessionOptions } from "../domain/options.ts";
import { Place } from "../domain/place.ts";
import { initialState, SessionState } from "../domain/session.ts";
import { JsonObject, parseJson } from "../domain/json.ts";
import type { Unreadable } from "../domain/unreadable.ts";
import type { SessionRecord } from "../engine/ports.ts";
import { EVENT, faultIn, type Format, NewerFormatError, OPTIONS, POLICY, STATE } from "./format.ts";
import { NodeRow } from "./node-row.ts";

/**
 * Reads rows of the database. An unreadable row becomes a value with `unreadable` or a notice: one damaged session, event or
 * command must not keep the others from being read.
 */

/** Latest time that a `Date` can hold, ms. */
const MAX_TIME = 8.64e15;
const Time = z.int().min(0).max(MAX_TIME).catch(0);
const Count = z.int().min(0).catch(0);

type Read<T> = { readonly value: T } | { readonly fault: Unreadable };

/** Reads a JSON text. Reasons quote nothing of the text. */
function readText<T>(name: string, text: unknown, parse: (text: string) => T): Read<T> {
  const fault = (why: string, isNewer = false): Read<T> => ({ fault: { why: `${name}: ${why}`, isNewer } });
  if (text === null || text === "") return fault("missing");
  if (typeof text !== "string") return fault("not text");
  try {
    return { value: parse(text) };
  } catch (error) {
    return error instanceof NewerFormatError
      ? { fault: { why: error.message.replace(/\.$/, ""), isNewer: true } }
      : fault("not valid JSON");
  }
}

/** Reads a text in the format version of the server that wrote it, and checks the types in `schema`. */
function readStored<T>(
  name: string,
  text: unknown,
  { format, schema }: { format: Format<T>; schema: z.ZodType },
): Read<T> {
  const read = readText(name, text, (found) => format.read(found));
  if ("fault" in read || (typeof text === "string" && VALID_TEXTS.has(text))) return read;
  const field = faultIn(schema, read.value);
  if (field === undefined) {
    if (schema !== SessionEvent) rememberValid(String(text));
    return read;
  }
  return { fault: { why: `${name}: no valid ${field === "" ? "content" : field}`, isNewer: false } };
}

/** Texts found valid, to skip another check: most sessions share options and policy with others. */
const VALID_TEXTS = new Set<string>();
const [MAX_SOUND, MAX_CHARS] = [500, 4_000];

function rememberValid(text: string): void {
  if (text.length > MAX_CHARS) return;
  if (VALID_TEXTS.size >= MAX_SOUND) VALID_TEXTS.clear();
  VALID_TEXTS.add(text);
}

/** Reads a string stored as JSON. */
function readString(name: string, text: unknown): Read<string> {
  return readText(name, text, (found) => z.string().parse(JSON.parse(found)));
}

function valueOf<T>(read: Read<T>): T | undefined {
  return "value" in read ? read.value : undefined;
}

/** Reads the place of a session on a store of several machines. A damaged place counts as none. */
function readPlace(text: unknown): Place | undefined {
  return typeof text === "string" ? Place.safeParse(parseJson(text)).data : undefined;
}

/** Session with its owner node. All fields of the node are `null` without an owner. */
export const SessionRow = z
  .object({
    ...NodeRow.shape,
    nodeId: z.string().nullable().catch(null),
    /** Only on stores of several machines. */
    nodeName: z.string().nullish().catch(null),
    id: z.string(),
    principal: z.unknown(),
    cwd: z.unknown(),
    spec: z.unknown(),
    policy: z.unknown(),
    state: z.unknown(),
    title: z.unknown(),
    place: z.unknown().optional(),
    status: z.unknown(),
    atWork: z.unknown(),
    lastEvent: Count,
    createdAt: Time,
    updatedAt: Time,
    rev: Count,
  })
  .transform(({ atWork, cwd, lastEvent, place, policy: policyText, principal, spec, state, status, title, ...row }) => {
    const policyRead: Read<SessionPolicy | undefined> =
      policyText === null
        ? { value: undefined }
        : readStored("policy", policyText, { format: POLICY, schema: SessionPolicy });
    const read = {
      principal: readString("principal", principal),
      spec: readStored("options", spec, { format: OPTIONS, schema: SessionOptions }),
      policy: policyRead,
      state: readStored("state", state, { format: STATE, schema: SessionState }),
    };
    const last = valueOf(read.state)?.lastEventId ?? lastEvent;
    // Treats the session as unreadable, because no change of it could be stored.
    if (last !== lastEvent)
      read.state = { fault: { why: "state: its last event is not that of its log", isNewer: false } };
    const faults = Object.values(read).flatMap((part) => ("fault" in part ? [part.fault] : []));
    const unreadable: Unreadable | undefined =
      faults.length === 0
        ? undefined
        : { why: faults.map(({ why }) => why).join("; "), isNewer: faults.every(({ isNewer }) => isNewer) };
    // State in place of an unreadable one: nothing runs, as far as others are concerned.
    const inert: SessionState = { ...initialState(row.updatedAt), lastEventId: lastEvent, lastOutcome: "failed" };
    return {
      ...row,
      place: readPlace(place),
      principal: valueOf(read.principal) ?? "",
      spec: valueOf(read.spec) ?? { cwd: valueOf(readString("cwd", cwd)) ?? "" },
      policy: valueOf(read.policy),
      state: unreadable ? inert : (valueOf(read.state) ?? inert),
      title: valueOf(readString("title", title)),
      unreadable,
      /** True if the columns derived from the state need no change for an unreadable session. */
      isSettled: unreadable === undefined || unreadable.isNewer || (status === "error" && atWork === 0),
    };
  });
export type SessionRow = z.infer<typeof SessionRow>;

export function recordOf(row: SessionRow, owner: SessionRecord["owner"]): SessionRecord {
  const { id, place, principal, spec, policy, state, title, createdAt, updatedAt, rev, unreadable } = row;
  return {
    id,
    principal,
    spec,
    policy,
    state,
    title,
    createdAt,
    updatedAt,
    rev,
    owner,
    ...(place && { place }),
    ...(unreadable && { unreadable }),
  };
}

/** Event. An unreadable one becomes a `data_loss` notice with the stored text, so that ids have no gap. */
export const EventRow = z
  .object({ id: z.int(), at: Time, type: z.unknown(), event: z.unknown() })
  .transform(({ at, event, id, type }): StoredEvent => {
    const read = readStored("content", event, { format: EVENT, schema: SessionEvent });
    if ("value" in read) return { ...read.value, id, at };
    const message = `Event ${String(id)} cannot be read (${read.fault.why}).`;
    return { id, at, type: "notice", data: { kind: "data_loss", message, details: { type, stored: String(event) } } };
  });

export const PrincipalRow = z.object({
  principal: z.unknown().transform((text) => valueOf(readString("principal", text))),
});

const UNREADABLE_REPLY: CommandReply = {
  ok: false,
  refusal: {
    code: "INTERNAL",
    message: "The answer to the command cannot be read. Look at the session before you try again.",
  },
};

/** `null` without an answer yet. */
export const ReplyRow = z.object({
  reply: z.unknown().transform((text) => {
    if (text === null) return null;
    const parse: (text: string) => CommandReply = JSON.parse;
    const reply = valueOf(readText("reply", text, parse));
    return reply && faultIn(CommandReply, reply) === undefined ? reply : UNREADABLE_REPLY;
  }),
});

/** Entry of the ledger. Treats a damaged value as absent: the next report or turn writes the value again. */
export const LedgerRow = z.object({
  key: z.string(),
  value: z.unknown().transform((text) => JsonObject.catch({}).parse(typeof text === "string" ? parseJson(text) : {})),
  rev: Count,
  at: Time,
});

/** Time after which an unchanged entry is deleted, ms: longer than any window or day of a budget. */
export const FORGET_ENTRY_MS = 60 * 86_400_000;
