import type { Readable } from "node:stream";
import { stripControlChars } from "../../security/control-chars.ts";

/** Bytes kept of an output, so that a secret is masked before the cut, and bytes shown. */
const [KEPT, SHOWN] = [65_536, 2_048];

/** Bytes of an unfinished line held back, so that lines of stdout and stderr stay whole. */
const MAX_LINE = 16_384;

const LINE_BREAK = 0x0a;

/** Keeps at least the last `KEPT` bytes, in constant memory. */
class LastBytes {
  readonly #room = Buffer.alloc(2 * KEPT);
  #length = 0;
  /** True if bytes before `bytes` are lost. */
  isCut = false;

  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  add(added: Buffer): void {
    const part = added.subarray(-KEPT);
    if (part.length < added.length) this.#keep(0);
    if (this.#length + part.length > this.#room.length) this.#keep(KEPT);
    part.copy(this.#room, this.#length);
    this.#length += part.length;
  }

  #keep(most: number): void {
    this.isCut = true;
    this.#room.copyWithin(0, this.#length - most, this.#length);
    this.#length = most;
  }
}

/** Reads stdout and stderr of a command, and keeps the end of both. */
export class OutputTail {
  readonly #last = new LastBytes();
  /** Last line of each stream, as long as it is unfinished. */
  readonly #lines: { rest: Buffer }[] = [];

  read(stream: Readable): void {
    const line = { rest: Buffer.alloc(0) };
    this.#lines.push(line);
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => {
      const all = line.rest.length === 0 ? chunk : Buffer.concat([line.rest, chunk]);
      const end = all.lastIndexOf(LINE_BREAK) + 1;
      const taken = all.length - end > MAX_LINE ? all.length : end;
      this.#last.add(all.subarray(0, taken));
      line.rest = Buffer.from(all.subarray(taken));
    });
  }

  /** Returns the end of the output as plain text, masked by `mask`, at most `SHOWN` bytes. */
  text(mask: (text: string) => string): string {
    const rests = this.#lines.map(({ rest }) => rest).filter(({ length }) => length > 0);
    const kept = [this.#last.bytes.toString(), rests.map((rest) => rest.toString()).join("\n")].join("");
    // Masks twice: line breaks within a secret may be changed here, and colors may divide a secret.
    const plain = toPlainText(mask(kept));
    const masked = mask(plain);
    // Hides the first half of a cut output, because the output may begin in the middle of a secret.
    const unsure = this.#last.isCut ? mask(plain.slice(0, plain.length / 2)).length : 0;
    return endOf(masked.slice(unsure).trimEnd());
  }
}

/**
 * Sequences for terminals: colors and cursor, titles and links, others. `stripVTControlCharacters` of Node would also remove
 * text before a bell, possibly a part of a secret.
 */
// oxlint-disable-next-line eslint/no-control-regex -- it matches the sequences themselves
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b\n]{0,1000}(?:\u0007|\u001b\\)|[ -/]*[0-~])/g;

function toPlainText(text: string): string {
  return stripControlChars(text.replaceAll(SEQUENCES, "").replaceAll(/\r\n?/g, "\n"), "\n\t");
}

/** Returns the last `SHOWN` bytes, without a character that is cut off. */
function endOf(text: string): string {
  const bytes = Buffer.from(text);
  let start = Math.max(0, bytes.length - SHOWN);
  while (isInsideCharacter(bytes[start])) start += 1;
  return bytes.toString("utf8", start);
}

/** True for the second and later bytes of a character. */
function isInsideCharacter(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x80 && byte < 0xc0;
}
