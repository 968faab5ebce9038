/** What Claude Code wants to do is the model's own text: in a form it must not pass for ours, nor do anything to a screen. */

/** Everything that moves a cursor, hides, or turns the direction of writing, written out; line breaks and tabs stay. */
export function harmless(text: string): string {
  return text.replaceAll(/\p{Cs}/gu, "\u{FFFD}").replaceAll(/[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}

/** On one line of at most so many characters. */
export function inline(text: string, most: number): string {
  const line = harmless(text.slice(0, most + 1).replaceAll(/\s+/g, " ")).trim();
  return text.length > most || line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

export interface Room {
  readonly characters: number;
  readonly lines: number;
}

/** Of what is too long the beginning is shown, and the end, where something may be hidden. */
const HEAD_SHARE = 0.75;

/** As a block of its own, set in so that no line of it can be taken for one of ours. `mark` begins each line. */
export function block(text: string, room: Room, mark = ""): string {
  const lines = text.split("\n");
  if (text.length <= room.characters && lines.length <= room.lines) return setIn(text, mark);
  const head = beginning(text, share(room, HEAD_SHARE));
  const tail = ending(text.slice(head.length), share(room, 1 - HEAD_SHARE));
  const hidden = text.length - head.length - tail.length;
  const cut = `    [cut: ${String(hidden)} characters are not shown]`;
  return [setIn(head, mark), cut, setIn(tail, mark)].join("\n");
}

function setIn(text: string, mark: string): string {
  return harmless(text)
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
