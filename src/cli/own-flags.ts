/** Takes the flags with these names, each with a value, out of a command line. The others are those of serve. */
export function ownFlags(
  argv: readonly string[],
  names: readonly string[],
): { own: Map<string, string>; rest: string[] } {
  const rest: string[] = [];
  const own = new Map<string, string>();
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? "";
    const [name = "", inline] = word.split(/=(.*)/s);
    if (!names.includes(name)) {
      rest.push(word);
      continue;
    }
    if (inline === undefined) at += 1;
    own.set(name, inline ?? argv[at] ?? "");
  }
  return { own, rest };
}
