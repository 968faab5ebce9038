import { closeSync, constants, openSync, writeFileSync } from "node:fs";
import type { JsonObject } from "../domain/json.ts";
import { type ByEventType, type DataOf, decideBy } from "../domain/event-table.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { Masker } from "./mask.ts";

/** `O_NONBLOCK` makes opening a pipe without a reader an error. Otherwise the open would block the server with all sessions. */
const APPEND = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;

interface AuditLogOptions {
  readonly file: string;
  readonly masker: Masker;
  /** Called when an entry cannot be written. The audited request continues. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Appends JSON lines to `file`, which only its owner can read. Each line is masked and written before the call returns; `time`
 * is ISO 8601. Reopens `file` for each line, so that log rotation can move it away. Servers can share `file`: appended lines do
 * not mix.
 */
export function createAuditLog({ file, masker, onFault }: AuditLogOptions): (entry: JsonObject) => void {
  return (entry) => {
    const line = { time: new Date().toISOString(), server: process.pid, ...masker.fields(entry) };
    try {
      const descriptor = openSync(file, APPEND, 0o600);
      try {
        writeFileSync(descriptor, `${JSON.stringify(line)}\n`);
      } finally {
        closeSync(descriptor);
      }
    } catch (error) {
      onFault(error);
    }
  };
}

/**
 * Returns the audit entry for an event that asks, passes on or answers a request; `undefined` for all other events. Derived
 * from the session's log, so that no route of an answer is missed. Contains neither inputs nor answer texts.
 */
export function requestEntry(event: SessionEvent): JsonObject | undefined {
  return decideBy(ENTRIES, event);
}

const noEntry = (): undefined => undefined;

const ENTRIES: ByEventType<JsonObject | undefined> = {
  "session.opened": noEntry,
  "session.configured": noEntry,
  "session.closed": noEntry,
  "prompt.queued": noEntry,
  "prompt.steered": noEntry,
  "prompt.dropped": noEntry,
  "turn.started": noEntry,
  "turn.baseline": noEntry,
  "verification.started": noEntry,
  "verification.ended": noEntry,
  "turn.receipt": noEntry,
  "turn.ended": noEntry,
  message: noEntry,
  "permission.asked": askedEntry,
  "permission.answered": answeredEntry,
  "question.asked": askedEntry,
  "question.answered": answeredEntry,
  "request.passed": ({ from, requestId, to, why }) => ({ action: "passed", requestId, from, to, why }),
  "background.changed": noEntry,
  notice: noEntry,
  "process.started": noEntry,
  "process.exited": noEntry,
};

function askedEntry({ requestId, risk, toolName }: DataOf<"permission.asked">): JsonObject {
  return { action: "asked", requestId, toolName, ...(risk && { risk: risk.level }) };
}

function answeredEntry(answered: DataOf<"permission.answered">): JsonObject {
  const { behavior, by, forSession, requestId, rule, toolName } = answered;
  const how = { ...(rule !== undefined && { rule }), ...(forSession && { forSession }) };
  return { action: "answered", requestId, toolName, decision: behavior, by, ...how };
}
