import type { Socket } from "node:net";

/** Maximum number of connections read beyond `firstPart` of their hello, because each may send up to the limit of a hello. */
const MAX_WAITING = 8;

/**
 * Resolves to the first bytes of a connection, as many as Node reads ahead, and leaves them in the stream. Empty if the stream
 * ends first, or after `ms`. A hello complete in its first bytes needs no turn in `HelloQueue`, so that silent and slow
 * connections cannot delay good hellos.
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
   * Calls `read` once there is room, or at once if the hello `isWhole` in the first part. Settles as `read` does, which must
   * have a time limit.
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
