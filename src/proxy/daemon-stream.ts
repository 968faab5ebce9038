/** What comes from a daemon: its lines, and the silence of one that is frozen. */

/** A daemon that owes an answer and says nothing for this time is taken for dead, s of awake time. */
const SILENT_S = 5;

interface Watched {
  /** This process does not read either: silence says nothing of the daemon then. */
  readonly isDeaf: () => boolean;
  readonly onSilent: () => void;
}

/** Counts seconds in which nothing is heard. They are counted, not compared: a machine that sleeps counts none. */
export class Silence {
  readonly #watched: Watched;
  #timer: NodeJS.Timeout | undefined;
  #seconds = 0;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  get isWatched(): boolean {
    return this.#timer !== undefined;
  }

  watch(): void {
    const { isDeaf, onSilent } = this.#watched;
    this.#seconds = 0;
    this.#timer ??= setInterval(() => {
      this.#seconds = isDeaf() ? 0 : this.#seconds + 1;
      if (this.#seconds >= SILENT_S) onSilent();
    }, 1_000);
  }

  heard(): void {
    this.#seconds = 0;
  }

  rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const NEWLINE = 0x0a;

/** Lines of any length, without their ends. The next one is read when the last was dealt with. */
export async function* linesOf(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
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
