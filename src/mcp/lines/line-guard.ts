import { Transform, type TransformCallback } from "node:stream";
import { IdReader } from "./id-reader.ts";

export interface LongLine {
  readonly bytes: number;
  /** JSON spelling of the request's id; `undefined` if there is none. */
  readonly id: string | undefined;
}

export interface LineGuardOptions {
  /** Maximum bytes of a line. */
  readonly most: number;
  readonly onLongLine: (line: LongLine) => void;
  /** Returns the line to pass on, or `undefined` to drop the line. */
  readonly take: (line: Buffer) => Buffer | undefined;
  /** Awaited before the output ends. Must not reject. */
  readonly atEnd: () => Promise<void>;
}

/**
 * Passes on newline-delimited messages, each in one chunk, because the SDK's transport copies its whole buffer for every chunk.
 * Drops and reports lines over `most` bytes, because the transport would end the connection.
 */
export class LineGuard extends Transform {
  readonly #options: LineGuardOptions;
  #held: Buffer[] = [];
  #bytes = 0;
  /** Set once the current line is too long, to find the id of its request. */
  #id: IdReader | undefined;

  constructor(options: LineGuardOptions) {
    super();
    this.#options = options;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    let rest = chunk;
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      this.#hold(rest.subarray(0, end + 1));
      this.#release();
      rest = rest.subarray(end + 1);
    }
    if (rest.length > 0) this.#hold(rest);
    done();
  }

  /** Adds the line break missing from a last line, because the SDK would wait for more input. */
  override _flush(done: TransformCallback): void {
    if (this.#bytes > 0) this.#hold(Buffer.of(NEWLINE));
    this.#release();
    void this.#end(done);
  }

  async #end(done: TransformCallback): Promise<void> {
    await this.#options.atEnd();
    done();
  }

  #hold(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#id) return this.#id.take(part);
    this.#held.push(part);
    if (this.#bytes <= this.#options.most) return;
    this.#id = new IdReader();
    for (const held of this.#held) this.#id.take(held);
    this.#held = [];
  }

  #release(): void {
    const { onLongLine, take } = this.#options;
    const line = Buffer.concat(this.#held);
    const [bytes, id] = [this.#bytes, this.#id];
    this.#held = [];
    this.#bytes = 0;
    this.#id = undefined;
    if (id) return onLongLine({ bytes, id: id.found });
    const taken = bytes > 0 ? take(line) : undefined;
    if (taken) this.push(taken);
  }
}

const NEWLINE = 0x0a;
