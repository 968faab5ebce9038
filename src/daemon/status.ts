import { once } from "node:events";
import type { Socket } from "node:net";
import type { ProcessId, DaemonOnFile } from "./running-file.ts";
import { connectTo, isNotListening, type DaemonSocket } from "./socket.ts";
import { firstLine, objectIn, PROTOCOL, type DaemonStatus, type Question } from "./wire.ts";

/** Asks running daemons to describe themselves. */

/** Time limit of an answer, ms. */
const ANSWER_MS = 5_000;

export interface RunningDaemon extends DaemonStatus {
  readonly name: string;
}

export interface UnreachableDaemon extends Partial<ProcessId> {
  readonly name: string;
  readonly why: "does not answer" | "has no socket";
}

/** Returns daemons that are `recorded` as running or have a socket, but do not answer. */
export function unreachableDaemons(
  { running, silent }: Daemons,
  recorded: readonly DaemonOnFile[],
): UnreachableDaemon[] {
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
  /** Sorted by `startedAt`. */
  readonly running: readonly RunningDaemon[];
  /** Sockets with a listener that does not answer. */
  readonly silent: readonly DaemonSocket[];
}

/** Asks the daemons behind `places`. Skips sockets without a listener. */
export async function describeDaemons(places: readonly DaemonSocket[]): Promise<Daemons> {
  const silent: DaemonSocket[] = [];
  const asked = places.map(async (place) => {
    try {
      const about = await askDaemon(place.path);
      // A daemon asked during its `bind` does not know its socket yet.
      return about ? [{ name: place.name, ...about, socket: about.socket === "" ? place.path : about.socket }] : [];
    } catch {
      silent.push(place);
      return [];
    }
  });
  const found = (await Promise.all(asked)).flat().toSorted((one, other) => (one.startedAt < other.startedAt ? -1 : 1));
  return { running: found, silent };
}

/** Resolves to `undefined` if nothing listens at `path`. Rejects if the daemon does not answer. */
async function askDaemon(path: string): Promise<DaemonStatus | undefined> {
  return sendQuestion(path, "status", (answer) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this program
    return { turns: [], ...answer } as unknown as DaemonStatus;
  });
}

/**
 * Resolves once the daemon has ended; running turns may take any time. Rejects if the daemon does not answer, or is silent for
 * `ANSWER_MS`.
 */
export async function stopDaemon(path: string): Promise<void> {
  await sendQuestion(path, "stop", async (_, socket) => {
    socket.setTimeout(ANSWER_MS, () => socket.destroy(new Error("the daemon has fallen silent")));
    if (!socket.closed) await once(socket.resume(), "close");
  });
}

async function sendQuestion<T>(
  path: string,
  purpose: Question["purpose"],
  onAnswer: (answer: Readonly<Record<string, unknown>>, socket: Socket) => T,
): Promise<Awaited<T> | undefined> {
  const socket = await connectTo(path).catch((error: unknown) => {
    if (isNotListening(error)) return undefined;
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
