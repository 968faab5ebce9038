/** Formats texts of the model for forms, so that no text can imitate this server or control a screen. */

/** Escapes characters that move the cursor, are invisible or turn the direction of writing. Line breaks and tabs stay. */
export function escapeControls(text: string): string {
  return text.replaceAll(/\p{Cs}/gu, "\u{FFFD}").replaceAll(/[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}

/** Puts `text` on one line of at most `most` characters. */
export function toOneLine(text: string, most: number): string {
  const line = escapeControls(text.slice(0, most + 1).replaceAll(/\s+/g, " ")).trim();
  return text.length > most || line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** Columns of a line in Claude Code's terminal at a width of 80. Longer lines are cut there. */
export const COLUMNS = 74;

/** Share of the beginning in a shortened text. The end is shown too, because something may be hidden there. */
const HEAD_SHARE = 0.75;

/** Replaces line breaks by ⏎ and tabs by spaces. */
export function inOneLine(text: string): string {
  return escapeControls(
    text
      .trim()
      .replaceAll(/\s*\n\s*/g, " ⏎ ")
      .replaceAll("\t", " "),
  );
}

/** Maximum number of characters beside a choice, for lack of room. */
const MAX_SHORTENED = 1_200;

/** Keeps the beginning and the end of a long line. */
export function shortened(line: string): string {
  if (line.length <= MAX_SHORTENED) return line;
  const head = Math.floor(MAX_SHORTENED * HEAD_SHARE);
  const tail = MAX_SHORTENED - head;
  const cut = `[cut: ${String(line.length - MAX_SHORTENED)} characters are not shown]`;
  return escapeControls(`${line.slice(0, head)} … ${cut} … ${line.slice(-tail)}`);
}

/**
 * Returns at most two lines: Claude Code's terminal shows three lines of a message, and no key shows the rest. A longer text
 * keeps its end as well, because something may be hidden there.
 */
export function inFewLines(text: string): { readonly lines: readonly string[]; readonly isWhole: boolean } {
  const line = inOneLine(text);
  const first = breakAt(line, COLUMNS);
  const rest = line.slice(first.length).trimStart();
  if (rest === "") return { lines: [first], isWhole: true };
  const room = COLUMNS - INDENT.length;
  if (beginningOf(rest, room) === rest) return { lines: [first, INDENT + rest], isWhole: true };
  const cut = `[cut: ${String(rest.length)} characters] … `;
  const end = endOf(rest, room - cut.length);
  const mark = cut.replace(String(rest.length), String(rest.length - end.length));
  return { lines: [first, INDENT + mark + end], isWhole: false };
}

const INDENT = "  ";

/** Returns the beginning of `line` within `columns`, up to the end of a word if that is in the second half. */
function breakAt(line: string, columns: number): string {
  const head = beginningOf(line, columns);
  const space = head.lastIndexOf(" ");
  const isBroken = head.length < line.length && line[head.length] !== " " && space > columns / 2;
  return isBroken ? head.slice(0, space) : head;
}

function beginningOf(text: string, columns: number): string {
  let [end, left] = [0, columns];
  for (const character of text) {
    left -= columnsOf(character);
    if (left < 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}

function endOf(text: string, columns: number): string {
  // Looks only at characters that may have room.
  const end = Array.from(text.slice(-2 * columns)).toReversed();
  return Array.from(beginningOf(end.join(""), columns))
    .toReversed()
    .join("");
}

/** Returns 2 for every character that may be wide, because a line too short does no harm. */
function columnsOf(character: string): number {
  return (character.codePointAt(0) ?? 0) < 0x1100 ? 1 : 2;
}

export function fitsInLine(text: string): boolean {
  return beginningOf(text, COLUMNS) === text;
}

export interface Room {
  readonly characters: number;
  readonly lines: number;
}

export function fitsRoom(text: string, { characters, lines }: Room): boolean {
  return text.length <= characters && text.split("\n").length <= lines;
}

/** Formats a block, indented so that no line can imitate this server. `mark` begins each line. */
export function indentedBlock(text: string, room: Room, mark = ""): string {
  if (fitsRoom(text, room)) return indent(text, mark);
  const head = beginning(text, share(room, HEAD_SHARE));
  const tail = ending(text.slice(head.length), share(room, 1 - HEAD_SHARE));
  const hidden = text.length - head.length - tail.length;
  const cut = `    [cut: ${String(hidden)} characters are not shown]`;
  return [indent(head, mark), cut, indent(tail, mark)].join("\n");
}

function indent(text: string, mark: string): string {
  return escapeControls(text)
    .split("\n")
    .map((line) => `    ${mark}${line}`)
    .join("\n");
}

function share({ characters, lines }: Room, part: number): Room {
  return { characters: Math.floor(characters * part), lines: Math.floor(lines * part) };
}

function beginning(text: string, { characters, lines }: Room): string {
  return text.slice(0, characters).split("\n").slice(0, lines).join("\n");
}

function ending(text: string, { characters, lines }: Room): string {
  return text.slice(-characters).split("\n").slice(-lines).join("\n");
}
