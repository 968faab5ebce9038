/** Lines written by a Claude Code and not yet acknowledged by its owner, numbered from 1. Pure. */

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export type Item = { readonly n: number; readonly line: Buffer } | { readonly n: number; readonly exit: Exit };

/** Counts of missing lines above a number. */
export interface MissingLines {
  /** Lines other than partial text. */
  readonly lost: number;
  /** Lines of partial text. */
  readonly evicted: number;
}

/** Maximum size of all kept lines together, bytes. */
export const MAX_KEPT = 67_108_864;
/** Overhead of a kept line (map entry and buffer), bytes, measured on Node 22 and rounded up. */
const LINE_COST = 256;
/** Claude Code writes `type` first. */
const PARTIAL = Buffer.from('{"type":"stream_event"');

/** True for partial text, which Claude Code repeats in the following whole message. */
function isPartial(line: Buffer): boolean {
  return line.length >= PARTIAL.length && line.compare(PARTIAL, 0, PARTIAL.length, 0, PARTIAL.length) === 0;
}

export class LineBuffer {
  readonly #bound: number;
  readonly #kept = new Map<number, Buffer>();
  /** Numbers of kept lines of partial text. Up to `#evictedTo` none is kept. */
  readonly #partial = new Set<number>();
  #evictedTo = 0;
  /** Numbers of lines other than partial text that could not be kept. */
  readonly #lost = new Set<number>();
  #exit: Exit | undefined;
  #last = 0;
  #acknowledged = 0;
  #bytes = 0;

  constructor(bound = MAX_KEPT) {
    this.#bound = bound;
  }

  /** Number of the last item. */
  get last(): number {
    return this.#last;
  }

  /** True if Claude Code has to wait (backpressure). */
  get isFull(): boolean {
    return this.#bytes > this.#bound;
  }

  /** True after the exit is acknowledged. */
  get isDone(): boolean {
    return this.#exit !== undefined && this.#acknowledged === this.#last;
  }

  /**
   * Adds a line. Above the bound, evicts partial text, oldest first, and copies other lines out of their chunks. Returns true
   * for partial text.
   */
  push(line: Buffer): boolean {
    const isPart = isPartial(line);
    this.#last += 1;
    this.#kept.set(this.#last, line);
    this.#bytes += line.length + LINE_COST;
    if (isPart) this.#partial.add(this.#last);
    while (this.isFull && this.#evictedTo < this.#last) {
      this.#evictedTo += 1;
      if (this.#partial.has(this.#evictedTo)) this.#drop(this.#evictedTo);
      else this.#compact(this.#evictedTo);
    }
    return isPart;
  }

  /** Numbers a line that is too long to be kept. */
  skip(): void {
    this.#last += 1;
    this.#lost.add(this.#last);
  }

  /** Adds the last item. */
  end(exit: Exit): void {
    this.#last += 1;
    this.#exit = exit;
  }

  /** Returns the first kept item above `after`. */
  next(after: number): Item | undefined {
    for (let n = Math.max(after, this.#acknowledged) + 1; n <= this.#last; n += 1) {
      const line = this.#kept.get(n);
      if (line) return { n, line };
      if (n === this.#last && this.#exit) return { n, exit: this.#exit };
    }
    return undefined;
  }

  acknowledge(upTo: number): void {
    const addExit = Math.min(upTo, this.#last);
    for (let n = this.#acknowledged + 1; n <= addExit; n += 1) {
      this.#drop(n);
      this.#lost.delete(n);
    }
    this.#acknowledged = Math.max(this.#acknowledged, addExit);
  }

  /** Counts acknowledged lines as lost: an owner that asks for them has forgotten stored lines. */
  missingAfter(after: number): MissingLines {
    const from = Math.max(after, this.#acknowledged);
    const above = (numbers: Iterable<number>) => [...numbers].filter((n) => n > from).length;
    const lines = Math.max(0, this.#last - from - (this.#exit ? 1 : 0));
    const lost = above(this.#lost);
    return { lost: lost + Math.max(0, from - after), evicted: Math.max(0, lines - above(this.#kept.keys()) - lost) };
  }

  /** Copies a kept line if most of its chunk is unused, so that the chunk can be freed. */
  #compact(n: number): void {
    const line = this.#kept.get(n);
    if (!line || line.length * 2 > line.buffer.byteLength) return;
    const own = Buffer.allocUnsafeSlow(line.length);
    line.copy(own);
    this.#kept.set(n, own);
  }

  #drop(n: number): void {
    const line = this.#kept.get(n);
    if (!line) return;
    this.#bytes -= line.length + LINE_COST;
    this.#kept.delete(n);
    this.#partial.delete(n);
  }
}

const LINE_BREAK = 0x0a;

/** Stands in for a line that was too long. */
export const TOO_LONG = Symbol("too long");

/** Splits a stream into lines without changing bytes. Pure. */
export class LineSplitter {
  readonly #maxLine: number;
  #parts: Buffer[] = [];
  #length = 0;
  #isDropping = false;

  /** `maxLine`: bound on a line, bytes. */
  constructor(maxLine: number) {
    this.#maxLine = maxLine;
  }

  /** Returns the lines that end in `chunk`, without line breaks. Reports `TOO_LONG` as soon as a line passes the bound. */
  push(chunk: Buffer): (Buffer | typeof TOO_LONG)[] {
    const lines: (Buffer | typeof TOO_LONG)[] = [];
    let rest = chunk;
    for (let end = rest.indexOf(LINE_BREAK); end >= 0; end = rest.indexOf(LINE_BREAK)) {
      if (!this.#take(rest.subarray(0, end))) lines.push(TOO_LONG);
      if (!this.#isDropping) lines.push(this.#joined());
      this.#reset();
      rest = rest.subarray(end + 1);
    }
    if (rest.length > 0 && !this.#take(rest)) lines.push(TOO_LONG);
    return lines;
  }

  /** Returns the text after the last line break. */
  rest(): Buffer | undefined {
    const rest = this.#length > 0 ? this.#joined() : undefined;
    this.#reset();
    return rest;
  }

  /** Returns false for the part with which the line passes the bound. */
  #take(part: Buffer): boolean {
    if (this.#isDropping) return true;
    this.#length += part.length;
    if (this.#length > this.#maxLine) {
      this.#reset();
      this.#isDropping = true;
      return false;
    }
    this.#parts.push(part);
    return true;
  }

  #joined(): Buffer {
    const [first] = this.#parts;
    return first && this.#parts.length === 1 ? first : Buffer.concat(this.#parts, this.#length);
  }

  #reset(): void {
    this.#parts = [];
    this.#length = 0;
    this.#isDropping = false;
  }
}
