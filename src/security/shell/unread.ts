/** Words of a shell command, and what hides the files that it means. */

/** Longer commands are not read: characters and words. */
export const [MAX_COMMAND_LENGTH, MAX_WORDS] = [10_000, 200];

/** Characters that stand for something else. */
export const STANDS_FOR = /[$`*?[\]{}\\!]|~(?=[\w+-])/;
/** Words by which others count from another folder, or are read elsewhere. */
export const MOVES = /(?<=^|[\s;&|(])(?:cd|pushd|popd|eval|source|\.|-C)(?=\s|$)/g;

/** Why the text of a command does not show the files that it means, in words; undefined where it does. */
export function whyUnread(command: string): string | undefined {
  if (command.length > MAX_COMMAND_LENGTH) return "its length";
  const sign = STANDS_FOR.exec(command)?.[0] ?? command.match(MOVES)?.[0];
  if (sign !== undefined) return `\`${sign}\``;
  return wordsOf(command).length > MAX_WORDS ? "the number of its words" : undefined;
}

/** With quotes taken away, as borders, and as what holds a name together; options also without their letters. */
export function wordsOf(command: string): string[] {
  const borders = /[\s;&|<>()=,:@]+/;
  const quoted = [...command.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, double, single]) => double ?? single ?? "");
  const plain = [command.replaceAll(/["']/g, ""), command.replaceAll(/["']/g, " ")].flatMap((text) =>
    text.split(borders),
  );
  const options = plain.filter((word) => /^-\w./.test(word)).map((word) => word.slice(2));
  return [...new Set([...plain, ...quoted, ...options])].filter((word) => word.trim() !== "");
}
