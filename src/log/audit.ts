import { closeSync, constants, openSync, writeFileSync } from "node:fs";
import type { JsonObject } from "../domain/json.ts";
import { type ByEventType, type DataOf, decideBy } from "../domain/event-table.ts";
import type { SessionEvent } from "../domain/event.ts";
import type { Masker } from "./mask.ts";

/** Opened without blocking: a pipe without a reader is an error, and would block the server with all sessions. */
const APPEND = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;

interface AuditLogOptions {
  readonly file: string;
  readonly masker: Masker;
  /** Told when an entry cannot be written: the work goes on. */
  readonly onFault: (error: unknown) => void;
}

/**
 * Appends JSON lines to a file that only its owner reads, each before its call returns and masked; `time` is ISO 8601.
 * The file is opened for each line, so that it can be moved away under us. Servers that share it do not mix their lines.
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
 * What becomes of a request, for the audit log: asked, gone on to the next who may answer, answered and by whom. Read off
 * the session's log, so that no way of answering is missed; never what was said.
 */
export function requestEntry(event: SessionEvent): JsonObject | undefined {
  return decideBy(ENTRIES, event);
}

const none = (): undefined => undefined;

const ENTRIES: ByEventType<JsonObject | undefined> = {
  "session.opened": none,
  "session.configured": none,
  "session.closed": none,
  "prompt.queued": none,
  "prompt.steered": none,
  "prompt.dropped": none,
  "turn.started": none,
  "turn.ended": none,
  message: none,
  "permission.asked": askedEntry,
  "permission.answered": answeredEntry,
  "question.asked": askedEntry,
  "question.answered": answeredEntry,
  "request.passed": ({ from, requestId, to, why }) => ({ action: "passed", requestId, from, to, why }),
  "background.changed": none,
  notice: none,
  "process.started": none,
  "process.exited": none,
};

function askedEntry({ requestId, risk, toolName }: DataOf<"permission.asked">): JsonObject {
  return { action: "asked", requestId, toolName, ...(risk && { risk: risk.level }) };
}

function answeredEntry(answered: DataOf<"permission.answered">): JsonObject {
  const { behavior, by, forSession, requestId, rule, toolName } = answered;
  const how = { ...(rule !== undefined && { rule }), ...(forSession && { forSession }) };
  return { action: "answered", requestId, toolName, decision: behavior, by, ...how };
}
