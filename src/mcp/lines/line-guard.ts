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
  /** Returns the line to pass on, `undefined` to omit it. */
  readonly take: (line: Buffer) => Buffer | undefined;
  /** Delays the end of the output. Never rejects. */
  readonly atEnd: () => Promise<void>;
}

/**
 * Passes newline-delimited messages on, each in one chunk. Reports and omits lines over `most` bytes, because the SDK's
 * transport would end the connection, and copies its buffer for every chunk.
 */
export class LineGuard extends Transform {
  readonly #options: LineGuardOptions;
  #held: Buffer[] = [];
  #bytes = 0;
  /** Reads the id of the current line once the line is too long. */
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

  /** Completes a last line without a line break, because the SDK would wait for its rest. */
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
