import { ConfigError } from "../../config/error.ts";
import { AppError } from "../../domain/error.ts";
import { nestingDepth } from "../preflight.ts";
import { oneId, readArguments } from "./arguments.ts";
import { openFile, STDOUT } from "./export.ts";
import { findSession, withStore, type SessionRecord, type Store } from "./store.ts";
import { isTurnAbandoned } from "./text-format.ts";
import { untilStopped } from "./until-stopped.ts";

const FLAGS = {
  output: { type: "string" },
  interrupt: { type: "boolean" },
  "no-files": { type: "boolean" },
} as const;

/** Writes a session into a file for another machine. */
export async function pack(argv: string[]): Promise<number> {
  const { positionals, values } = readArguments("sessions pack", argv, { options: FLAGS, words: "an id" });
  const id = oneId("sessions pack", positionals);
  const { interrupt = false, "no-files": noFiles = false, output } = values;
  refuseNested("pack");
  if (output === undefined && process.stdout.isTTY)
    throw new ConfigError("sessions pack writes a file to stdout. Add > FILE, or --output FILE.");
  return withStore(values, async (store) => {
    const record = await idleSession(store, await findSession(store, id), interrupt);
    const notes = await untilStopped(async (stop) => write(store, record, { noFiles, output, stop }));
    for (const note of notes) console.error(note);
    return 0;
  });
}

export function refuseNested(verb: string): void {
  if (nestingDepth() === 0) return;
  throw new ConfigError(`sessions ${verb} cannot run inside a session of claude-agents-mcp. Run it in your own shell.`);
}

interface Way {
  readonly noFiles: boolean;
  readonly output: string | undefined;
  readonly stop: AbortSignal;
}

/** Returns notes on the file. */
async function write(store: Store, record: SessionRecord, { noFiles, output, stop }: Way): Promise<readonly string[]> {
  const [{ packSession }, { localSource }] = await Promise.all([
    import("../../pack/pack-session.ts"),
    import("../../pack/local-source.ts"),
  ]);
  return packSession(await localSource(store, record, noFiles), async ({ bytes, notes }) => {
    stop.throwIfAborted();
    const sink = output === undefined ? STDOUT : await openFile(output, false);
    let isWhole = false;
    try {
      for await (const part of bytes) {
        // A write to the output that `untilStopped` has destroyed would wait for ever.
        stop.throwIfAborted();
        await sink.write(part);
      }
      stop.throwIfAborted();
      await refuseChanged(store, record);
      isWhole = true;
    } finally {
      await sink.end(isWhole);
    }
    return notes;
  });
}

/** Time limit of an interrupt, and interval of looks at its turn, ms. */
const [INTERRUPT_MS, LOOK_MS] = [60_000, 100];

/** Returns the session without a running turn. */
async function idleSession(store: Store, record: SessionRecord, interrupts: boolean): Promise<SessionRecord> {
  const { id: sessionId, principal, state } = record;
  const busy = (problem: string) => new AppError("SESSION_BUSY", problem, { sessionId });
  if (isTurnAbandoned(record))
    throw busy(
      "The session was left running by a server that is gone. Start a server, which settles it, then pack it.",
    );
  if (!state.turn) return record;
  if (!interrupts)
    throw busy(`A turn is running in session ${sessionId}. Wait for its end, or interrupt it with --interrupt.`);
  const data = { by: "sessions pack" };
  const reply = await store.inbox.send(
    sessionId,
    { id: crypto.randomUUID(), principal, kind: "interrupt", data },
    INTERRUPT_MS,
  );
  if (!reply.ok) throw new AppError(reply.refusal.code, reply.refusal.message, { sessionId });
  const deadline = performance.now() + INTERRUPT_MS;
  for (;;) {
    const found = await findSession(store, sessionId);
    if (!found.state.turn) return found;
    if (performance.now() > deadline) throw busy("The turn has not ended within 60 s of its interrupt. Try again.");
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** Throws SESSION_BUSY if the session went on while it was read. */
async function refuseChanged(store: Store, { id: sessionId, state }: SessionRecord): Promise<void> {
  const now = await store.rows.get(sessionId);
  if (now?.state.turnCount === state.turnCount && now?.state.turn === null) return;
  const problem = "A turn has begun meanwhile, so the file is not of one moment. Pack the session again.";
  throw new AppError("SESSION_BUSY", problem, { sessionId });
}
