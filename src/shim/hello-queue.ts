/** Connections that are read at a time before their hello: each may send up to the limit of a hello. */
const MAX_WAITING = 8;

/** Limits the memory that connections without a hello can take. Further connections stay unread, in order of arrival. */
export class HelloQueue {
  #waiting = 0;
  readonly #queued: (() => void)[] = [];

  /** Calls `read` when it is its turn, at once if there is room, and settles as it does. `read` must have a time limit. */
  async run<T>(read: () => Promise<T>): Promise<T> {
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
