import { AppError, sessionNotFound } from "../../domain/error.ts";
import type { ControlRequest } from "../../domain/control.ts";
import type { Engine } from "../api.ts";
import { refuseNested, startsClaude, type Gate } from "../policy/gate.ts";
import type { Ownership } from "../ownership.ts";
import type { Clock, Logger, SessionBackend, SessionRecord } from "../ports.ts";
import { isAbandoned } from "../recovery.ts";
import { waitForSessions } from "./wait.ts";

/**
 * Engines with a part of the operations: for callers without the scope run, and for a server inside a session. Neither starts
 * Claude Code or takes over a session.
 */

/** Operations that only read. */
export type SessionReader = Pick<Engine, "get" | "list" | "wait">;

interface Dependencies {
  readonly backend: SessionBackend;
  readonly clock: Clock;
  readonly log: Pick<Logger, "debug" | "warn">;
}

/**
 * Returns the reading operations. `ownership` throws if the session's log cannot be written, or its store is lost. `onRead`
 * gets each session read or waited for. `shown` maps a record to the record returned: unchanged by default, or as it is after
 * recovery.
 */
export function createReader(
  dependencies: Dependencies,
  ownership: Pick<Ownership, "refuseLost" | "refuseTrouble">,
  {
    onRead = () => undefined,
    shown = async (record) => Promise.resolve(record),
  }: { onRead?: (record: SessionRecord) => void; shown?: (record: SessionRecord) => Promise<SessionRecord> } = {},
): SessionReader {
  const { backend } = dependencies;
  const get: SessionReader["get"] = async (principal, sessionId) => {
    const record = await backend.rows.get(sessionId);
    // Throws the reason if the session is gone and was at work on this server.
    if (!record) ownership.refuseLost(sessionId);
    if (record?.principal !== principal) throw sessionNotFound(sessionId);
    ownership.refuseTrouble(sessionId);
    onRead(record);
    return shown(record);
  };
  return {
    get,
    list: async (query) =>
      Promise.all(
        (await backend.rows.list(query)).map(async (record) =>
          // Lists a session as recorded if its takeover fails, so that the others are still listed.
          shown(record).catch((error: unknown) => {
            dependencies.log.warn("a session is listed as recorded", { sessionId: record.id, error: String(error) });
            return record;
          }),
        ),
      ),
    wait: async (principal, request) => {
      const look = async () => {
        for (const { sessionId } of request.sessions) await get(principal, sessionId);
      };
      await look();
      return { woke: await waitForSessions(dependencies, look, request) };
    },
  };
}

/**
 * Returns the engine for callers without the scope run. Shows a session of a dead server as recorded, because a takeover ends
 * processes, writes to the log and may start Claude Code again (`onLost`). Periodic recovery, or a caller with the scope run,
 * takes the session over.
 */
export function createReaderEngine(engine: Engine, reader: SessionReader): Engine {
  const isAbandonedSession = async (principal: string, id: string) => isAbandoned(await reader.get(principal, id));
  const refuseAbandoned = async (principal: string, id: string): Promise<void> => {
    if (!(await isAbandonedSession(principal, id))) return;
    const problem = "The server that ran the session has died, and no other has taken it over yet";
    const advice =
      "That happens within a minute, or with the next call of a caller with the scope run. Try again then.";
    throw new AppError("SESSION_BUSY", `${problem}. ${advice}`, { sessionId: id });
  };
  const no = async (): Promise<never> => Promise.resolve().then(() => refuseReader());
  // Names every operation: a new operation is closed to readers until opened here.
  return {
    ...reader,
    forCaller: (caller) => engine.forCaller(caller),
    forConnection: (terms) => createReaderEngine(engine.forConnection(terms), reader),
    checkMayConfigure: async () => engine.checkMayConfigure(),
    enforceGate: async () => engine.enforceGate(),
    waitingBefore: async (id) => engine.waitingBefore(id),
    atWork: () => engine.atWork(),
    partial: async (id) => engine.partial(id),
    workTree: async (principal, id) => engine.workTree(principal, id),
    pack: async (...session) => engine.pack(...session),
    takeUnattended: async () => Promise.resolve([]),
    read: async (principal, id, from, limit) => engine.read(principal, id, from, limit),
    ...answeringOperations(engine, { isAbandonedSession, refuseAbandoned }),
    control: async (caller, id, request, by) => {
      if (!ONLY_READS[request.do]) refuseReader();
      await refuseAbandoned(caller.principal, id);
      if (startsClaude(request, await reader.get(caller.principal, id))) refuseReader(STARTED);
      return engine.control(caller, id, request, by);
    },
    create: no,
    open: no,
    fork: no,
    adopt: no,
    prompt: no,
    verify: no,
    continueTurn: no,
    use: async (principal, id) => engine.use(principal, id),
    interrupt: no,
    clientGone: no,
    cancel: no,
    close: no,
    queue: no,
    rename: no,
    delete: no,
    stop: no,
    drain: no,
  };
}

/** Control requests that only read, and so are open to a caller without the scope run. */
const ONLY_READS: Readonly<Record<ControlRequest["do"], boolean>> = {
  "task-output": true,
  usage: true,
  configure: false,
  "stop-task": false,
  suspend: false,
  rewind: false,
};

const STARTED = "No Claude Code process runs in the session, and starting one for this needs the scope run";

function refuseReader(problem = "This needs the scope run"): never {
  throw new AppError("PERMISSION_DENIED", `${problem}. Use a token that has it.`);
}

interface AbandonedCheck {
  readonly isAbandonedSession: (principal: string, id: string) => Promise<boolean>;
  readonly refuseAbandoned: (principal: string, id: string) => Promise<void>;
}

/** A caller without the scope run may answer if a server runs the session. */
function answeringOperations(
  engine: Engine,
  { isAbandonedSession, refuseAbandoned }: AbandonedCheck,
): Pick<Engine, "answer" | "delivered" | "extend" | "fill" | "pass" | "revoke"> {
  return {
    answer: async (caller, id, request) => {
      await refuseAbandoned(caller.principal, id);
      return engine.answer(caller, id, request);
    },
    revoke: async (principal, id, request) => {
      await refuseAbandoned(principal, id);
      return engine.revoke(principal, id, request);
    },
    pass: async (principal, id, request) => {
      await refuseAbandoned(principal, id);
      return engine.pass(principal, id, request);
    },
    extend: async (principal, id, requestId) => {
      await refuseAbandoned(principal, id);
      return engine.extend(principal, id, requestId);
    },
    fill: async (principal, id, request) => {
      await refuseAbandoned(principal, id);
      return engine.fill(principal, id, request);
    },
    delivered: async (principal, id, requests) => {
      if (!(await isAbandonedSession(principal, id))) await engine.delivered(principal, id, requests);
    },
  };
}

/** Returns the engine for a server inside a session, so that its shell cannot approve its requests or start sessions. */
export function createNestedEngine(engine: Engine, reader: SessionReader, gate: Pick<Gate, "depth">): Engine {
  const no = async (): Promise<never> => Promise.resolve().then(() => refuseNested(gate));
  // Names every operation here too: a new operation is closed until opened.
  const nested: Engine = {
    ...reader,
    forCaller: () => nested,
    forConnection: () => nested,
    waitingBefore: async (id) => engine.waitingBefore(id),
    atWork: () => engine.atWork(),
    partial: async (id) => engine.partial(id),
    workTree: async (principal, id) => engine.workTree(principal, id),
    read: async (principal, id, from, limit) => engine.read(principal, id, from, limit),
    enforceGate: async () => engine.enforceGate(),
    stop: async (graceMs) => engine.stop(graceMs),
    drain: async () => engine.drain(),
    delivered: async () => Promise.resolve(),
    takeUnattended: async () => Promise.resolve([]),
    checkMayConfigure: no,
    pack: no,
    create: no,
    open: no,
    fork: no,
    adopt: no,
    prompt: no,
    verify: no,
    continueTurn: no,
    use: async (principal, id) => engine.use(principal, id),
    answer: no,
    pass: no,
    extend: no,
    fill: no,
    revoke: no,
    interrupt: no,
    clientGone: no,
    cancel: no,
    close: no,
    queue: no,
    control: no,
    rename: no,
    delete: no,
  };
  return nested;
}
