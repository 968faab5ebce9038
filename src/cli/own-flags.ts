import { parseArgs, type ParseArgsConfig } from "node:util";
import { ConfigError } from "../config/error.ts";
import { FLAGS_OF_ALL } from "../config/parse-flags.ts";
import { SETTINGS } from "../config/schema.ts";
import { didYouMean, nearest } from "../domain/suggest.ts";

/** Flags of the commands beside `serve`. */

type Options = NonNullable<ParseArgsConfig["options"]>;

interface Taken<O> {
  readonly options: O;
  /** Names what a command takes beside flags; "" where that is nothing. */
  readonly words?: string;
}

/** Reads the arguments of a command that has only flags of its own. Throws ConfigError, naming what the command takes. */
export function readOwn<const O extends Options>(
  command: string,
  args: readonly string[],
  { options, words = "" }: Taken<O>,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: words !== "", strict: true });
  } catch (error) {
    const [problem = ""] = (error instanceof Error ? error.message : String(error)).split(/\.\s/);
    const flags = Object.keys(options).map((flag) => `--${flag}`);
    const [, written = ""] = /^(?:Unknown option|Unexpected argument) '([^']+)'/.exec(problem) ?? [];
    const meant = didYouMean(written.startsWith("-") ? written : `--${written}`, [...FLAGS_OF_ALL, ...flags]);
    const taken = [...flags, ...(words === "" ? [] : [words])].join(", ");
    throw new ConfigError(`${command}: ${problem}.${meant} It takes ${taken}.`);
  }
}

/**
 * Takes the flags with these names, each with a value, out of a command line. The others are those of serve. Throws ConfigError for
 * a flag of neither that is nearest to one of the names: `serve` would name only its own.
 */
export function ownFlags(
  command: string,
  argv: readonly string[],
  names: readonly string[],
): { own: Map<string, string>; rest: string[] } {
  refuseMisspelt(command, argv, names);
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

/** Throws ConfigError for a flag that neither the command nor `serve` has, and that is nearest to one of the command's `names`. */
export function refuseMisspelt(command: string, argv: readonly string[], names: readonly string[]): void {
  const ofServe = SETTINGS.flatMap(({ flag }) => [`--${flag}`, `--no-${flag}`]);
  for (const word of argv) {
    const [name = ""] = word.split("=");
    if (!name.startsWith("--") || ofServe.includes(name) || names.includes(name)) continue;
    const meant = nearest(name, [...FLAGS_OF_ALL, ...names, ...ofServe]);
    if (meant === undefined || !names.includes(meant)) continue;
    throw new ConfigError(
      `${command}: unknown flag ${name}. Did you mean ${meant}? "claude-agents-mcp help ${command.split(" ")[0] ?? ""}" lists all flags.`,
    );
  }
}
