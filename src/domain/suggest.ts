/** Returns the word of `known` most similar to `word`, or `undefined` if none is similar. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(2, Math.floor(word.length / 3));
  // `word` comes from callers and may be a megabyte: skips names of too different a length without computing a distance.
  const possible = known.filter((name) => Math.abs(word.length - name.length) <= most || name.startsWith(word));
  const lower = word.toLowerCase();
  const otherCase = possible.find((name) => name.toLowerCase() === lower);
  if (otherCase !== undefined) return otherCase;
  const ranked = possible.map((name) => ({ name, distance: distance(word, name) })).toSorted(byDistance);
  return ranked[0] !== undefined && ranked[0].distance <= most ? ranked[0].name : undefined;
}

/**
 * Returns `nearest` as a sentence to append to an error (" Did you mean --x?"), or an empty string. `meant` maps words that
 * people type to known words without similarity.
 */
export function didYouMean(
  word: string,
  known: readonly string[],
  meant: Readonly<Record<string, string>> = {},
): string {
  const name = Object.hasOwn(meant, word) ? meant[word] : nearest(word, known);
  return name === undefined ? "" : ` Did you mean ${name}?`;
}

const byDistance = (a: { distance: number }, b: { distance: number }) => a.distance - b.distance;

/** Levenshtein distance. An unfinished word of 3 characters or more counts as one edit. */
function distance(from: string, to: string): number {
  if (from.length >= 3 && to.startsWith(from)) return from === to ? 0 : 1;
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [line, letter] of from.split("").entries()) {
    const above = row;
    row = [line + 1];
    for (const [column, other] of to.split("").entries()) {
      const replaced = (above[column] ?? 0) + (letter === other ? 0 : 1);
      row.push(Math.min(replaced, (above[column + 1] ?? 0) + 1, (row[column] ?? 0) + 1));
    }
  }
  return row.at(-1) ?? 0;
}
