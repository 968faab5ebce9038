import { parseArgs, type ParseArgsConfig } from "node:util";
import { ConfigError } from "../config/error.ts";
import { FLAGS_OF_ALL } from "../config/parse-flags.ts";
import { SETTINGS } from "../config/schema.ts";
import { didYouMean, nearest } from "../domain/suggest.ts";

/** Reads the flags of commands other than `serve`. */

type Options = NonNullable<ParseArgsConfig["options"]>;

interface OwnArguments<O> {
  readonly options: O;
  /** Names the arguments beside flags, for messages. "" if there are none. */
  readonly words?: string;
}

/** Reads the arguments of a command without flags of `serve`. Throws ConfigError with the list of allowed arguments. */
export function parseOwnFlags<const O extends Options>(
  command: string,
  args: readonly string[],
  { options, words = "" }: OwnArguments<O>,
) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: words !== "", strict: true });
  } catch (error) {
    const [problem = ""] = (error instanceof Error ? error.message : String(error)).split(/\.\s/);
    const flags = Object.keys(options).map((flag) => `--${flag}`);
    const [, written = ""] = /^(?:Unknown option|Unexpected argument) '([^']+)'/.exec(problem) ?? [];
    const suggestion = didYouMean(written.startsWith("-") ? written : `--${written}`, [...FLAGS_OF_ALL, ...flags]);
    const taken = [...flags, ...(words === "" ? [] : [words])].join(", ");
    throw new ConfigError(`${command}: ${problem}.${suggestion} It takes ${taken}.`);
  }
}

/**
 * Takes the flags `names`, each with a value, out of a command line. `rest` is for `serve`. Throws ConfigError for an unknown
 * flag close to one of `names`, because `serve` would suggest only its own flags.
 */
export function splitOwnFlags(
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

/** Throws ConfigError for a flag unknown to command and `serve`, if the nearest known flag is one of `names`. */
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
