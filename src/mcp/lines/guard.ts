import { Transform, type TransformCallback } from "node:stream";

/** The first and last bytes of a line that was too long: one of them holds the id of the request. */
const EDGE_BYTES = 1_024;

export interface LongLine {
  readonly bytes: number;
  /** The id of the request in it, where one could be made out. */
  readonly id: string | number | undefined;
}

/**
 * Passes newline-delimited messages on, each in one piece. A line over `most` bytes is reported and omitted: the
 * SDK's transport would end the connection, and its buffer copies itself for every chunk.
 */
export class LineGuard extends Transform {
  readonly #most: number;
  readonly #onLongLine: (line: LongLine) => void;
  readonly #takes: (line: Buffer) => boolean;
  #held: Buffer[] = [];
  #bytes = 0;

  /** `takes` has the last word on a line that is short enough. */
  constructor(most: number, onLongLine: (line: LongLine) => void, takes: (line: Buffer) => boolean = () => true) {
    super();
    this.#most = most;
    this.#onLongLine = onLongLine;
    this.#takes = takes;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    let rest = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      this.#hold(rest.subarray(0, end + 1));
      this.#release();
      rest = rest.subarray(end + 1);
    }
    if (rest.length > 0) this.#hold(rest);
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#release();
    done();
  }

  #hold(part: Buffer): void {
    this.#bytes += part.length;
    this.#held.push(part);
    if (this.#bytes <= this.#most) return;
    const all = Buffer.concat(this.#held);
    const tail = all.subarray(Math.max(EDGE_BYTES, all.length - EDGE_BYTES));
    // Copies, so that what they were cut from can go.
    this.#held = [Buffer.from(all.subarray(0, EDGE_BYTES)), Buffer.from(tail)];
  }

  #release(): void {
    const line = Buffer.concat(this.#held);
    const bytes = this.#bytes;
    this.#held = [];
    this.#bytes = 0;
    if (bytes > this.#most) this.#onLongLine({ bytes, id: idIn(line.toString("latin1")) });
    else if (bytes > 0 && this.#takes(line)) this.push(line);
  }
}

const ID = String.raw`"id"\s*:\s*(-?\d+|"[\w.:-]*")\s*`;
const ID_AT_END = new RegExp(String.raw`${ID}(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`);
const ID_AT_START = new RegExp(String.raw`^\s*\{(?:(?!"params")[^{])*?${ID},`);

/** Clients write the id before the parameters or after them; inside them it is something else. */
export function idIn(edges: string): LongLine["id"] {
  const found = ID_AT_END.exec(edges)?.[1] ?? ID_AT_START.exec(edges)?.[1];
  if (found === undefined) return undefined;
  return found.startsWith('"') ? found.slice(1, -1) : Number(found);
}
