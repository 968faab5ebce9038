import { ConfigError } from "../config/error.ts";
import { SETTINGS } from "../config/schema.ts";
import type { Setting } from "../config/setting.ts";
import { didYouMean } from "../domain/suggest.ts";

/** The help text, read off the tables of commands and settings, in at most 100 columns. */

const COMMANDS = {
  serve: "Speaks MCP on stdin and stdout. The default when no command is given.",
  demo: "Runs a session of Claude Code against a scripted model inside this program: no account, no cost.",
  help: "Prints this text, or that of one command.",
  version: "Prints the version.",
};
const DEMO_FLAGS = {
  "--live": "Takes the model of your own Claude Code login instead: that costs a little.",
  "--json": "Writes JSON lines, for programs.",
  "--keep": "Keeps the folder that the session worked in.",
};
const NAMES = Object.keys(COMMANDS);

const COLUMNS = 100;
const INDENT = 32;

/** Throws ConfigError when `command` is given and there is no such command. */
export function helpText(command?: string): string {
  if (command !== undefined && !NAMES.includes(command)) throw unknownCommand(command);
  if (command === undefined || command === "help") return page(usage(), commands(), examples(), flags(), more());
  if (command === "serve") return page(`Usage: claude-code-mcp [serve] [flags]\n\n${COMMANDS.serve}`, flags(), more());
  if (command === "demo") return page(`Usage: claude-code-mcp demo [flags]\n\n${COMMANDS.demo}`, demoFlags());
  return page(`Usage: claude-code-mcp version\n\n${COMMANDS.version}`);
}

export function unknownCommand(name: string): ConfigError {
  return new ConfigError(
    `Unknown command "${name}".${didYouMean(name, NAMES)} "claude-code-mcp help" lists all commands.`,
  );
}

function page(...parts: string[]): string {
  return `${parts.join("\n\n")}\n`;
}

function usage(): string {
  return [
    "Usage: claude-code-mcp [serve] [flags]",
    "       claude-code-mcp demo | help [command] | version",
    "",
    "An MCP server that runs Claude Code as durable, supervised background agents.",
  ].join("\n");
}

function commands(): string {
  return ["Commands", ...Object.entries(COMMANDS).map(([name, about]) => entry(name, about))].join("\n");
}

function demoFlags(): string {
  return ["Flags", ...Object.entries(DEMO_FLAGS).map(([name, about]) => entry(name, about))].join("\n");
}

function examples(): string {
  return [
    "Examples",
    "  claude mcp add agents -- claude-code-mcp --allow-dir ~/src",
    "  claude-code-mcp --turn-max-ms 600000 --log-level=debug",
  ].join("\n");
}

function flags(): string {
  const groups = [...new Set(SETTINGS.map(({ group }) => group))];
  const blocks = groups.map((group) =>
    [group, ...SETTINGS.filter((each) => each.group === group).map(flag)].join("\n"),
  );
  return ["A flag wins over the variable in brackets, that over the file named by --config.", ...blocks].join("\n\n");
}

function flag(setting: Setting): string {
  const { flag: name, placeholder, variable, fallback, reading, meaning } = setting;
  const left = reading === "boolean" ? `--${name}, --no-${name}` : `--${name} ${placeholder}`;
  const again = reading === "directories" ? " May be given several times." : "";
  return `${entry(left, meaning + again)}\n${indented(`[${variable}, default: ${fallback}]`)}`;
}

function more(): string {
  return "More: docs/configuration.md in this package.";
}

/** A name and what it is, side by side where the name leaves room. */
function entry(name: string, about: string): string {
  const text = indented(about);
  return name.length + 4 > INDENT ? `  ${name}\n${text}` : `  ${name}`.padEnd(INDENT) + text.slice(INDENT);
}

function indented(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= COLUMNS) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(" ".repeat(INDENT) + word);
  }
  return lines.join("\n");
}
