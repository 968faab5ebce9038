import type { Socket } from "node:net";

/** Connections that are read at a time beyond the first part of their hello: each may send up to the limit of a hello. */
const MAX_WAITING = 8;

/**
 * The first bytes of a connection, as many as Node reads ahead; they stay in the stream. Empty if it has ended before, or after `ms`.
 * A hello that is whole in them needs no turn: connections that send nothing, or slowly, would take it away.
 */
export async function firstPart(socket: Socket, ms: number): Promise<Buffer> {
  await new Promise<void>((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      socket.off("readable", finish).off("end", finish).off("close", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    socket.on("readable", finish).on("end", finish).on("close", finish);
  });
  const part: unknown = socket.read();
  if (!Buffer.isBuffer(part)) return Buffer.alloc(0);
  socket.unshift(part);
  return part;
}

/** Limits the memory that connections without a hello can take. Further connections stay unread, in order of arrival. */
export class HelloQueue {
  #waiting = 0;
  readonly #queued: (() => void)[] = [];

  /**
   * Calls `read` when it is its turn, at once if there is room or the hello `isWhole` in the first part, and settles as it does.
   * `read` must have a time limit.
   */
  async run<T>(read: () => Promise<T>, isWhole = false): Promise<T> {
    if (isWhole) return read();
    if (this.#waiting < MAX_WAITING) this.#waiting += 1;
    else await new Promise<void>((resolve) => this.#queued.push(resolve));
    try {
      return await read();
    } finally {
      const next = this.#queued.shift();
      if (next) next();
      else this.#waiting -= 1;
    }
  }
}
