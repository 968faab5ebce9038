/** The lines that a Claude Code has written and that its owner has not acknowledged yet, numbered from 1. Pure. */

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export type Item = { readonly n: number; readonly line: Buffer } | { readonly n: number; readonly exit: Exit };

/** What is gone of the lines above a number. */
export interface Gone {
  /** Lines that were no partial text. */
  readonly lost: number;
  /** Lines of partial text. */
  readonly evicted: number;
}

/** Of all kept lines, bytes. */
export const MAX_KEPT = 67_108_864;
/** What a kept line costs beside its bytes: an entry in a map and a buffer. Bytes, measured on Node 22 and rounded up. */
const LINE_COST = 256;
/** Claude Code writes `type` first. */
const PARTIAL = Buffer.from('{"type":"stream_event"');

/** Partial text: Claude Code repeats it in the whole message that follows. */
function isPartial(line: Buffer): boolean {
  return line.length >= PARTIAL.length && line.compare(PARTIAL, 0, PARTIAL.length, 0, PARTIAL.length) === 0;
}

export class LineBuffer {
  readonly #bound: number;
  readonly #kept = new Map<number, Buffer>();
  /** Numbers of the kept lines of partial text; those up to `#evictedTo` are gone. */
  readonly #partial = new Set<number>();
  #evictedTo = 0;
  /** Numbers of lines that could not be kept though they were no partial text. */
  readonly #lost = new Set<number>();
  #exit: Exit | undefined;
  #last = 0;
  #acknowledged = 0;
  #bytes = 0;

  constructor(bound = MAX_KEPT) {
    this.#bound = bound;
  }

  /** The number of the last item. */
  get last(): number {
    return this.#last;
  }

  /** Claude Code has to wait. */
  get isFull(): boolean {
    return this.#bytes > this.#bound;
  }

  /** The exit is acknowledged. */
  get isDone(): boolean {
    return this.#exit !== undefined && this.#acknowledged === this.#last;
  }

  /** Above the bound, partial text goes, the oldest first; until then a line keeps the chunk that it came in. Whether it is partial text. */
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

  /** A line that is too long to be kept has a number all the same. */
  lose(): void {
    this.#last += 1;
    this.#lost.add(this.#last);
  }

  /** The last item. */
  end(exit: Exit): void {
    this.#last += 1;
    this.#exit = exit;
  }

  /** The first item above this number that is kept. */
  next(after: number): Item | undefined {
    for (let n = Math.max(after, this.#acknowledged) + 1; n <= this.#last; n += 1) {
      const line = this.#kept.get(n);
      if (line) return { n, line };
      if (n === this.#last && this.#exit) return { n, exit: this.#exit };
    }
    return undefined;
  }

  acknowledge(upTo: number): void {
    const end = Math.min(upTo, this.#last);
    for (let n = this.#acknowledged + 1; n <= end; n += 1) {
      this.#drop(n);
      this.#lost.delete(n);
    }
    this.#acknowledged = Math.max(this.#acknowledged, end);
  }

  /** Acknowledged lines count as lost: an owner that asks for them has forgotten what it has stored. */
  gone(after: number): Gone {
    const from = Math.max(after, this.#acknowledged);
    const above = (numbers: Iterable<number>) => [...numbers].filter((n) => n > from).length;
    const lines = Math.max(0, this.#last - from - (this.#exit ? 1 : 0));
    const lost = above(this.#lost);
    return { lost: lost + Math.max(0, from - after), evicted: Math.max(0, lines - above(this.#kept.keys()) - lost) };
  }

  /** What stays must not keep a chunk whose other lines are gone. */
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

/** In place of a line that was too long. */
export const TOO_LONG = Symbol("too long");

/** Splits a stream into lines, whose bytes stay as they are. Pure. */
export class LineSplitter {
  readonly #maxLine: number;
  #parts: Buffer[] = [];
  #length = 0;
  #isDropping = false;

  /** Bytes. */
  constructor(maxLine: number) {
    this.#maxLine = maxLine;
  }

  /** The lines that end in this chunk, without their line breaks; a line that is too long is reported as soon as it is. */
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

  /** What stands behind the last line break. */
  rest(): Buffer | undefined {
    const rest = this.#length > 0 ? this.#joined() : undefined;
    this.#reset();
    return rest;
  }

  /** False at the part with which the line becomes too long. */
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
