import { ConfigError } from "../config/error.ts";
import { SETTINGS } from "../config/schema.ts";
import type { Setting } from "../config/setting.ts";
import { didYouMean } from "../domain/suggest.ts";

/** The help text, read off the tables of commands and settings, in at most 100 columns. */

const COMMANDS = {
  serve: "Speaks MCP on stdin and stdout. The default when no command is given.",
  console: "Shows the sessions in a browser: watch, start, reply, approve. For as long as it runs.",
  sessions: "Lists, shows, counts, exports and deletes kept sessions, with or without a running server.",
  demo: "Runs a session of Claude Code against a scripted model inside this program: no account, no cost.",
  token: "Makes a token for a client of a server over HTTP, and prints it once. It is stored nowhere.",
  help: "Prints this text, or that of one command.",
  version: "Prints the version.",
};
const DEMO_FLAGS = {
  "--live": "Takes the model of your own Claude Code login instead: that costs a little.",
  "--json": "Writes JSON lines, for programs.",
  "--keep": "Keeps the folder that the session worked in.",
};
const CONSOLE_FLAGS = {
  "--port <n>": "The port of 127.0.0.1 to listen on. Default: 0, a free one.",
  "--store <path>":
    "The file that sessions are kept in, as for serve. So are all other flags of serve but --http and --notify-*.",
};
const TOKEN_FLAGS = { "--json": "Writes JSON, for programs." };
const SESSIONS_VERBS = {
  list: "Lists sessions, newest first.",
  "show ID": "Says what is known of one. The start of an id is enough, here and below.",
  stats: "Counts, times, error rates and costs over all of them. Also: sessions --stats.",
  "export ID": "Writes its whole log.",
  "delete ID...": "Deletes sessions in which nothing runs, with their logs. It asks before it does.",
};
const SESSIONS_FLAGS = {
  "list --status <status>": "Only of this status, such as running or idle. May be given several times.",
  "list --cwd, stats --cwd <dir>": "Only those that work in this folder.",
  "list --since <time>": "Only those changed since then: 12h, 7d, 2026-01-31.",
  "stats --since <time>": "Only what has happened since then.",
  "list --text <text>": "Only those with this text in the title, the folder or the first prompt.",
  "list --limit <n>": "At most so many. Default: 50.",
  "list, show, stats --json": "Writes JSON, for programs.",
  "export --format <format>": "jsonl (one event a line, as stored; the default) or markdown (to read).",
  "export --output <file>": "Writes to a new file and not to stdout.",
  "export --force": "Overwrites the file.",
  "delete --older-than <time>": "Instead of ids: all in which nothing has happened since then, such as 30d.",
  "delete --yes": "Does not ask.",
  "--store <path>": "The file that sessions are kept in, as for serve.",
  "--config <path>": "A JSON file with settings, as for serve.",
};
const NAMES = Object.keys(COMMANDS);

const COLUMNS = 100;
const INDENT = 32;

/** Throws ConfigError when `command` is given and there is no such command. */
export function helpText(command?: string): string {
  if (command !== undefined && !NAMES.includes(command)) throw unknownCommand(command);
  if (command === undefined || command === "help") {
    return page(usage(), entries("Commands", COMMANDS), examples(), flags(), more());
  }
  if (command === "serve")
    return page(`Usage: claude-agents-mcp [serve] [flags]\n\n${COMMANDS.serve}`, flags(), more());
  if (command === "demo")
    return page(`Usage: claude-agents-mcp demo [flags]\n\n${COMMANDS.demo}`, entries("Flags", DEMO_FLAGS));
  if (command === "console") {
    const head = `Usage: claude-agents-mcp console [flags]\n\n${COMMANDS.console}`;
    return page(head, entries("Flags", CONSOLE_FLAGS), "More: docs/console.md.");
  }
  if (command === "token") {
    const head = `Usage: claude-agents-mcp token [--json]\n\n${COMMANDS.token}`;
    return page(head, entries("Flags", TOKEN_FLAGS), "Where it goes: docs/http.md.");
  }
  if (command === "sessions") {
    const head = `Usage: claude-agents-mcp sessions <verb> [flags]\n\n${COMMANDS.sessions}`;
    return page(head, entries("Verbs", SESSIONS_VERBS), entries("Flags", SESSIONS_FLAGS), "More: docs/sessions.md.");
  }
  return page(`Usage: claude-agents-mcp version\n\n${COMMANDS.version}`);
}

export function unknownCommand(name: string): ConfigError {
  return new ConfigError(
    `Unknown command "${name}".${didYouMean(name, NAMES)} "claude-agents-mcp help" lists all commands.`,
  );
}

function page(...parts: string[]): string {
  return `${parts.join("\n\n")}\n`;
}

function usage(): string {
  return [
    "Usage: claude-agents-mcp [serve] [flags]",
    "       claude-agents-mcp sessions <verb> [flags]",
    "       claude-agents-mcp demo | console | token | help [command] | version",
    "",
    "An MCP server that runs Claude Code as durable, supervised background agents.",
  ].join("\n");
}

function entries(title: string, all: Readonly<Record<string, string>>): string {
  return [title, ...Object.entries(all).map(([name, about]) => entry(name, about))].join("\n");
}

function examples(): string {
  return [
    "Examples",
    "  claude mcp add claude-agents-mcp -- claude-agents-mcp --allow-dir ~/src",
    "  claude-agents-mcp --turn-max-ms 600000 --log-level=debug",
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
