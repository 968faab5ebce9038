import { Transform, type Readable, type TransformCallback } from "node:stream";
import { JsonSize, type JsonBounds } from "../../security/json-size.ts";

/** Keeps the last whole lines of a stream. Half a line could hold half a secret, which masking would not recognize. */
export class LastLines {
  readonly #most: number;
  #text = "";
  /** True while skipping the rest of a line without its beginning. */
  #isCut = false;

  /** `most`: maximum length of `text`, characters. */
  constructor(most: number) {
    this.#most = most;
  }

  get text(): string {
    return this.#text;
  }

  take(piece: string): void {
    const text = this.#text + (this.#isCut ? afterLine(piece) : piece);
    if (this.#isCut && piece.includes("\n")) this.#isCut = false;
    if (text.length <= this.#most) {
      this.#text = text;
      return;
    }
    const cut = text.slice(-this.#most);
    this.#isCut = !cut.includes("\n");
    this.#text = afterLine(cut);
  }
}

/** Returns the text after the first line break. */
function afterLine(text: string): string {
  const end = text.indexOf("\n");
  return end < 0 ? "" : text.slice(end + 1);
}

/**
 * Limits one line of Claude Code's output. The SDK collects a line in one string: a line above the maximum length of a string
 * crashes this server with all sessions. A line below the limits with millions of values would block all sessions during
 * parsing, checking and storing.
 */

/** Bytes without the line break. A prompt returns in one line with all attachments, up to 32 MiB over HTTP. */
const MAX_LINE_BYTES = 67_108_864;
const LINE_BOUNDS: JsonBounds = { members: 500_000, depth: 1_000 };

const LINE_BREAK = 0x0a;

/** Passes lines through. At the first line above a bound, ends the stream, calls `onBroken` and discards the rest. */
export class LineLimit extends Transform {
  readonly #onBroken: (why: string) => void;
  #bytes = 0;
  #size = new JsonSize();
  #isBroken = false;

  constructor(onBroken: (why: string) => void) {
    super();
    this.#onBroken = onBroken;
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    if (this.#isBroken) return done();
    const why = this.#problemIn(chunk);
    if (why === undefined) return done(null, chunk);
    this.#isBroken = true;
    this.push(null);
    this.#onBroken(why);
    done();
  }

  #problemIn(chunk: Buffer): string | undefined {
    let rest = chunk;
    for (let end = rest.indexOf(LINE_BREAK); end >= 0; end = rest.indexOf(LINE_BREAK)) {
      const why = this.#take(rest.subarray(0, end));
      if (why !== undefined) return why;
      this.#bytes = 0;
      this.#size = new JsonSize();
      rest = rest.subarray(end + 1);
    }
    return this.#take(rest);
  }

  #take(part: Buffer): string | undefined {
    this.#bytes += part.length;
    if (this.#bytes > MAX_LINE_BYTES) return `It wrote more than ${String(MAX_LINE_BYTES)} bytes without a line break`;
    this.#size.take(part);
    const bound = this.#size.exceeded(LINE_BOUNDS);
    if (bound === "members") return `It wrote a message of more than ${String(LINE_BOUNDS.members)} values`;
    return bound && `It wrote a message of values nested more than ${String(LINE_BOUNDS.depth)} deep`;
  }
}

/**
 * Applies `LineLimit` to the output read by the SDK, and kills the process above a bound. The returned function gives the
 * reason.
 */
export function limitLines(process: { stdout: Readable }, kill: () => void): () => string | undefined {
  let fault: string | undefined;
  const { stdout } = process;
  const limit = new LineLimit((why) => {
    fault = `${why}, and was ended`;
    stdout.destroy();
    kill();
  });
  stdout.on("error", () => undefined);
  // The SDK reads `stdout`; Node itself uses `stdio`.
  process.stdout = stdout.pipe(limit);
  return () => fault;
}
