/** What somebody who wrote `word` most likely meant, or undefined when nothing is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const most = Math.max(2, Math.floor(word.length / 3));
  const ranked = known
    .map((name) => ({ name, distance: edits(word.toLowerCase(), name.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  return ranked[0] !== undefined && ranked[0].distance <= most ? ranked[0].name : undefined;
}

/** Edits from one word to the other (Levenshtein). */
function edits(from: string, to: string): number {
  let above = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [line, letter] of from.split("").entries()) {
    const row = [line + 1];
    for (const [column, other] of to.split("").entries()) {
      const replaced = (above[column] ?? 0) + (letter === other ? 0 : 1);
      row.push(Math.min(replaced, (above[column + 1] ?? 0) + 1, (row[column] ?? 0) + 1));
    }
    above = row;
  }
  return above.at(-1) ?? 0;
}
