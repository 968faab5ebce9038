import { AppError, sessionNotFound } from "../../domain/error.ts";
import type { ControlRequest } from "../../domain/control.ts";
import type { Engine } from "../api.ts";
import { refuseNested, startsClaude, type Gate } from "../policy/gate.ts";
import type { Ownership } from "../ownership.ts";
import type { Clock, Logger, SessionBackend, SessionRecord } from "../ports.ts";
import { isAbandoned } from "../recovery.ts";
import { waitLooking } from "./wait.ts";

/** Engines for callers who may start nothing: they read sessions and leave them as they are. */

/** The operations that read. */
export type Looking = Pick<Engine, "get" | "list" | "wait">;

interface Dependencies {
  readonly backend: SessionBackend;
  readonly clock: Clock;
  readonly log: Pick<Logger, "debug" | "warn">;
}

/**
 * `ownership` throws the reason why a session cannot be read: its log cannot be written, or the store is lost. `onLook` is told
 * of each session that is read or waited for, and `shown` maps a record to what is shown: the record itself, or the session after
 * recovery.
 */
export function lookingOf(
  dependencies: Dependencies,
  ownership: Pick<Ownership, "refuseLost" | "refuseTrouble">,
  {
    onLook = () => undefined,
    shown = async (record) => Promise.resolve(record),
  }: { onLook?: (record: SessionRecord) => void; shown?: (record: SessionRecord) => Promise<SessionRecord> } = {},
): Looking {
  const { backend } = dependencies;
  const get: Looking["get"] = async (principal, sessionId) => {
    const record = await backend.rows.get(sessionId);
    // If the session is gone and was one of ours, this throws why.
    if (!record) ownership.refuseLost(sessionId);
    if (record?.principal !== principal) throw sessionNotFound(sessionId);
    ownership.refuseTrouble(sessionId);
    onLook(record);
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
      return { woke: await waitLooking(dependencies, look, request) };
    },
  };
}

/**
 * For callers without the scope run. A session whose server has died is shown as it was recorded, because a takeover ends
 * processes, writes to the log and may start Claude Code again (`onLost`). The periodic recovery and callers with the scope run do that.
 */
export function readerOf(engine: Engine, looking: Looking): Engine {
  const isLeft = async (principal: string, id: string) => isAbandoned(await looking.get(principal, id));
  const refuseLeft = async (principal: string, id: string): Promise<void> => {
    if (!(await isLeft(principal, id))) return;
    const problem = "The server that ran the session has died, and no other has taken it over yet";
    const advice =
      "That happens within a minute, or with the next call of a caller with the scope run. Try again then.";
    throw new AppError("SESSION_BUSY", `${problem}. ${advice}`, { sessionId: id });
  };
  const no = async (): Promise<never> => Promise.resolve().then(() => refuseReader());
  // Every operation is named: a new one is closed to readers until it is opened here.
  return {
    ...looking,
    forCaller: (caller) => engine.forCaller(caller),
    forConnection: (terms) => readerOf(engine.forConnection(terms), looking),
    checkMayConfigure: async () => engine.checkMayConfigure(),
    enforceGate: async () => engine.enforceGate(),
    waitingBefore: async (id) => engine.waitingBefore(id),
    atWork: () => engine.atWork(),
    partial: async (id) => engine.partial(id),
    workTree: async (principal, id) => engine.workTree(principal, id),
    takeUnattended: async () => Promise.resolve([]),
    read: async (principal, id, from, limit) => engine.read(principal, id, from, limit),
    ...answeringOf(engine, { isLeft, refuseLeft }),
    control: async (caller, id, request, by) => {
      if (!ONLY_READS[request.do]) refuseReader();
      await refuseLeft(caller.principal, id);
      if (startsClaude(request, await looking.get(caller.principal, id))) refuseReader(STARTED);
      return engine.control(caller, id, request, by);
    },
    create: no,
    open: no,
    fork: no,
    adopt: no,
    prompt: no,
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

/** Which control requests only read: all that a caller without the scope run may make. */
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

interface Left {
  readonly isLeft: (principal: string, id: string) => Promise<boolean>;
  readonly refuseLeft: (principal: string, id: string) => Promise<void>;
}

/** A caller without the scope run may answer if a server runs the session. */
function answeringOf(
  engine: Engine,
  { isLeft, refuseLeft }: Left,
): Pick<Engine, "answer" | "delivered" | "extend" | "fill" | "pass" | "revoke"> {
  return {
    answer: async (caller, id, request) => {
      await refuseLeft(caller.principal, id);
      return engine.answer(caller, id, request);
    },
    revoke: async (principal, id, request) => {
      await refuseLeft(principal, id);
      return engine.revoke(principal, id, request);
    },
    pass: async (principal, id, request) => {
      await refuseLeft(principal, id);
      return engine.pass(principal, id, request);
    },
    extend: async (principal, id, requestId) => {
      await refuseLeft(principal, id);
      return engine.extend(principal, id, requestId);
    },
    fill: async (principal, id, request) => {
      await refuseLeft(principal, id);
      return engine.fill(principal, id, request);
    },
    delivered: async (principal, id, requests) => {
      if (!(await isLeft(principal, id))) await engine.delivered(principal, id, requests);
    },
  };
}

/** For a server inside a session: the session's own shell must not approve its requests, nor start another session. */
export function nestedOf(engine: Engine, looking: Looking, gate: Pick<Gate, "depth">): Engine {
  const no = async (): Promise<never> => Promise.resolve().then(() => refuseNested(gate));
  // Every operation is named here too: a new one is closed until it is opened.
  const nested: Engine = {
    ...looking,
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
    create: no,
    open: no,
    fork: no,
    adopt: no,
    prompt: no,
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
