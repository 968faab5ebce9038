/** Splits a shell command into words, and finds syntax that hides the files in use. */

/** Maximum characters and words of a command to read. */
export const [MAX_COMMAND_LENGTH, MAX_WORDS] = [10_000, 200];

/** Characters that stand for other text. */
export const SPECIAL_CHARACTERS = /[$`*?[\]{}\\!]|~(?=[\w+-])/;
/** Words after which paths count from another folder, or are read elsewhere. */
export const MOVING_WORDS = /(?<=^|[\s;&|(])(?:cd|pushd|popd|eval|source|\.|-C)(?=\s|$)/g;

/** Returns the reason why the text of a command does not show its files; `undefined` if the text does. */
export function whyUnclear(command: string): string | undefined {
  if (command.length > MAX_COMMAND_LENGTH) return "its length";
  const sign = SPECIAL_CHARACTERS.exec(command)?.[0] ?? command.match(MOVING_WORDS)?.[0];
  if (sign !== undefined) return `\`${sign}\``;
  return splitWords(command).length > MAX_WORDS ? "the number of its words" : undefined;
}

/**
 * Splits a command three times: with quotes removed, with quotes as borders, and into quoted texts. Adds options without their
 * letters.
 */
export function splitWords(command: string): string[] {
  const borders = /[\s;&|<>()=,:@]+/;
  const quoted = [...command.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, double, single]) => double ?? single ?? "");
  const plain = [command.replaceAll(/["']/g, ""), command.replaceAll(/["']/g, " ")].flatMap((text) =>
    text.split(borders),
  );
  const options = plain.filter((word) => /^-\w./.test(word)).map((word) => word.slice(2));
  return [...new Set([...plain, ...quoted, ...options])].filter((word) => word.trim() !== "");
}
