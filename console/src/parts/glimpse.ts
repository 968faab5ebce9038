import { oneLine } from "./plain.ts";

/** How a text begins, on one harmless line of at most `most` characters. */
export function glimpse(text: string, most: number): string {
  // Far more is not looked at: it would not be shown.
  const looked = text.slice(0, most * 4);
  const characters = Array.from(oneLine(looked));
  const isCut = characters.length > most || looked.length < text.length;
  return isCut ? `${characters.slice(0, most - 1).join("")}…` : characters.join("");
}
