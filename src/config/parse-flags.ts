import { parseArgs } from "node:util";
import { ConfigError } from "./error.ts";
import { refuseRemoved } from "./removed.ts";
import { SETTINGS } from "./schema.ts";
import type { Setting } from "./setting.ts";
import { didYouMean } from "../domain/suggest.ts";

/** A flag as written. `text` is `undefined` for a flag without a value. */
export interface Flag {
  readonly setting: Setting;
  /** With dashes and "--no-", for messages. */
  readonly written: string;
  readonly text: string | undefined;
  /** True for `--no-x` of a boolean. */
  readonly negated: boolean;
}

/** Flags of every command, read before the command's own. */
export const FLAGS_OF_ALL: readonly string[] = ["--help", "--version"];

/** Reads the arguments after the command, in order. Throws ConfigError. */
export function readFlags(argv: readonly string[]): Flag[] {
  // Not strict, because errors of `parseArgs` name neither a near match nor the allowed values.
  const { tokens } = parseArgs({ args: withValues(argv), options: OPTIONS, strict: false, tokens: true });
  return tokens.flatMap((token) => {
    if (token.kind === "option-terminator") return [];
    if (token.kind === "positional") {
      throw new ConfigError(
        `Unexpected argument "${token.value}": only flags go here, as --flag value or --flag=value.`,
      );
    }
    return [readFlag(token)];
  });
}

/** Gives a flag without a value the value `alone`, if its setting has one. */
function withValues(argv: readonly string[]): string[] {
  return argv.map((arg, at) => {
    const alone = SETTINGS.find(({ flag }) => arg === `--${flag}`)?.alone;
    const next = argv[at + 1];
    return alone !== undefined && (next === undefined || next.startsWith("-")) ? `${arg}=${alone}` : arg;
  });
}

const OPTIONS = Object.fromEntries(SETTINGS.map(({ flag, reading }) => [flag, { type: optionType(reading) }]));

function optionType(reading: Setting["reading"]): "boolean" | "string" {
  return reading === "boolean" ? "boolean" : "string";
}

interface OptionToken {
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

function readFlag({ name, rawName: written, value: text, inlineValue }: OptionToken): Flag {
  const negated = name.startsWith("no-");
  const setting = SETTINGS.find(({ flag, reading }) =>
    negated ? flag === name.slice(3) && reading === "boolean" : flag === name,
  );
  if (setting === undefined) {
    refuseRemoved(written);
    throw unknownFlag(written);
  }
  if (setting.reading === "boolean") {
    if (negated && text !== undefined) throw new ConfigError(`${written} takes no value.`);
  } else if (text === undefined || (inlineValue !== true && text.startsWith("--"))) {
    // "--a --b" is a forgotten value far more often than the value "--b", which can still be given as `--a=--b`.
    throw new ConfigError(`${written} needs a value: ${setting.allowed}.`);
  }
  return { setting, written, text, negated };
}

function unknownFlag(written: string): ConfigError {
  const known = SETTINGS.flatMap(({ flag, reading }) =>
    reading === "boolean" ? [`--${flag}`, `--no-${flag}`] : [`--${flag}`],
  );
  const suggestion = didYouMean(written, [...FLAGS_OF_ALL, ...known], { "-v": "--version" });
  return new ConfigError(`Unknown flag ${written}.${suggestion} "claude-agents-mcp help" lists all flags.`);
}
