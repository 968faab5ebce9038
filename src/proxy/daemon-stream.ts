/** Input from a daemon: lines, and detection of a frozen daemon. */

/** Silence after which a daemon that owes an answer counts as dead, s of time awake. */
const SILENT_S = 5;

interface SilenceHandlers {
  /** True if this process reads nothing either, so that silence proves nothing about the daemon. */
  readonly isDeaf: () => boolean;
  readonly onSilent: () => void;
}

/** Counts seconds of silence. Counts ticks instead of comparing times, so that time asleep does not count. */
export class SilenceWatch {
  readonly #watched: SilenceHandlers;
  #timer: NodeJS.Timeout | undefined;
  #seconds = 0;

  constructor(watched: SilenceHandlers) {
    this.#watched = watched;
  }

  get isWatched(): boolean {
    return this.#timer !== undefined;
  }

  start(): void {
    const { isDeaf, onSilent } = this.#watched;
    this.#seconds = 0;
    this.#timer ??= setInterval(() => {
      this.#seconds = isDeaf() ? 0 : this.#seconds + 1;
      if (this.#seconds >= SILENT_S) onSilent();
    }, 1_000);
  }

  reset(): void {
    this.#seconds = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const NEWLINE = 0x0a;

/** Yields lines of any length, without line ends. Applies backpressure: reads on after the consumer has handled a line. */
export async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let begun: Buffer[] = [];
  for await (const chunk of stream) {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      const line = Buffer.concat([...begun, rest.subarray(0, end)]).toString("utf8");
      begun = [];
      rest = rest.subarray(end + 1);
      yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
    if (rest.length > 0) begun.push(rest);
  }
  if (begun.length > 0) yield Buffer.concat(begun).toString("utf8");
}
