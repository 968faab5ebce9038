import { once } from "node:events";
import type { Socket } from "node:net";
import type { ProcessId, RecordedDaemon } from "./deaths.ts";
import { connectTo, isAbsent, type Place } from "./socket.ts";
import { firstLine, objectIn, PROTOCOL, type DaemonStatus, type Question } from "./wire.ts";

/** Running daemons, as each describes itself. */

/** Time limit of an answer, ms. */
const ANSWER_MS = 5_000;

export interface RunningDaemon extends DaemonStatus {
  readonly name: string;
}

/** A daemon that runs and cannot be asked. */
export interface UnreachableDaemon extends Partial<ProcessId> {
  readonly name: string;
  readonly why: "does not answer" | "has no socket";
}

/** Returns the daemons that are recorded as running or have a socket, but do not answer. */
export function unreachable({ running, silent }: Daemons, recorded: readonly RecordedDaemon[]): UnreachableDaemon[] {
  const mute = new Set(silent.map(({ name }) => name));
  const known = recorded.filter(({ pid }) => !running.some((each) => each.pid === pid));
  const unknown = [...mute].filter((name) => !known.some((each) => each.name === name));
  return [
    ...known.map((each) => ({ ...each, why: mute.has(each.name) ? NO_ANSWER : ("has no socket" as const) })),
    ...unknown.map((name) => ({ name, why: NO_ANSWER })),
  ];
}

const NO_ANSWER = "does not answer" as const;

export interface Daemons {
  /** In the order of their start. */
  readonly running: readonly RunningDaemon[];
  /** Something listens there and does not answer. */
  readonly silent: readonly Place[];
}

/** Asks the daemons behind the sockets; sockets without a listener are left out. */
export async function describeDaemons(places: readonly Place[]): Promise<Daemons> {
  const silent: Place[] = [];
  const asked = places.map(async (place) => {
    try {
      const about = await askDaemon(place.path);
      // A daemon that is asked while it binds does not know its socket yet.
      return about ? [{ name: place.name, ...about, socket: about.socket === "" ? place.path : about.socket }] : [];
    } catch {
      silent.push(place);
      return [];
    }
  });
  const found = (await Promise.all(asked)).flat().toSorted((one, other) => (one.startedAt < other.startedAt ? -1 : 1));
  return { running: found, silent };
}

/** Undefined where nothing listens. Rejects when the daemon does not answer. */
async function askDaemon(path: string): Promise<DaemonStatus | undefined> {
  return say(path, "status", (answer) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this program
    return { turns: [], ...answer } as unknown as DaemonStatus;
  });
}

/** Resolves when the daemon has ended, however long its turns take. Rejects when it does not answer, or falls silent meanwhile. */
export async function stopDaemon(path: string): Promise<void> {
  await say(path, "stop", async (_, socket) => {
    socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error("the daemon has fallen silent")));
    if (!socket.closed) await once(socket.resume(), "close");
  });
}

async function say<T>(
  path: string,
  purpose: Question["purpose"],
  onAnswer: (answer: Readonly<Record<string, unknown>>, socket: Socket) => T,
): Promise<Awaited<T> | undefined> {
  const socket = await connectTo(path).catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });
  if (!socket) return undefined;
  const hello: Question = { protocol: PROTOCOL, purpose };
  try {
    socket.write(`${JSON.stringify(hello)}\n`);
    const answer = objectIn(await firstLine(socket, ANSWER_MS));
    if (typeof answer["refused"] === "string") throw new Error(answer["refused"]);
    return await onAnswer(answer, socket);
  } finally {
    socket.destroy();
  }
}
