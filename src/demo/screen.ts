import { styleText } from "node:util";

/** Actors of the story. */
export type Actor = "client" | "server" | "claude" | "check" | "note";

export interface Line {
  /** Time since the start of the demo, ms. */
  at: number;
  who: Actor;
  text: string;
  details?: Record<string, unknown>;
}

export interface Screen {
  title(text: string): void;
  line(line: Line): void;
  ending(ending: Record<string, unknown>, text: string): void;
}

const COLORS = { client: "cyan", server: "green", claude: "magenta", check: "bold", note: "dim" } as const;

/** For people: a line per step, with its time. Colored if `color` is set. */
export function textScreen(write: (text: string) => void, color: boolean): Screen {
  const paint = (format: (typeof COLORS)[Actor], text: string) => (color ? styleText(format, text) : text);
  const title = (text: string) => write(`\n${color ? styleText("bold", text) : text}\n`);
  return {
    title,
    ending: (_, text) => title(text),
    line: ({ at, who, text }) => {
      const seconds = `${(at / 1000).toFixed(2)} s`.padStart(9);
      write(`${seconds}  ${paint(COLORS[who], who.padEnd(6))}  ${text}\n`);
    },
  };
}

/** For programs: a JSON object per line. */
export function jsonScreen(write: (text: string) => void): Screen {
  return {
    title: (text) => write(`${JSON.stringify({ title: text })}\n`),
    line: (line) => write(`${JSON.stringify(line)}\n`),
    ending: (ending) => write(`${JSON.stringify({ ending })}\n`),
  };
}
