import { servePage, settings } from "./help-settings.ts";
import { ConfigError } from "../config/error.ts";
import { didYouMean } from "../domain/suggest.ts";
import { CLIENTS } from "../install/clients.ts";

/** Builds the help text from the tables of commands and settings, in at most `COLUMNS` columns. */

const COLUMNS = 100;
const INDENT = 32;

interface Command {
  /** Arguments after the name of the program. */
  readonly usage: string;
  /** Line in the list of commands. */
  readonly about: string;
  /** Follows `about` on the command's own page. */
  readonly more?: string;
  readonly listsClients?: true;
  readonly verbs?: Readonly<Record<string, string>>;
  readonly flags?: Readonly<Record<string, string>>;
  /** Path of the document with details. */
  readonly docs?: string;
  /** Replaces the page made of the fields above. */
  readonly page?: () => string;
}

const INSTALL_FLAGS = {
  "--scope <user|project>": "The user's own file, the default, or that of the project in this folder.",
  "--yes": "Skip the confirmation. Required without a terminal.",
  "--json": "Write JSON, for programs.",
};

const UNINSTALL_FLAGS = {
  ...INSTALL_FLAGS,
  "--host <name>": "The entry of install --host for that machine.",
};

const COMMANDS: Readonly<Record<string, Command>> = {
  serve: {
    usage: "[serve] [flags]",
    about: "Serve MCP on stdin and stdout. The default command.",
    page: servePage,
  },
  console: {
    usage: "console [flags]",
    about: "Serve the web console while this command runs: watch, start, reply, approve.",
    flags: {
      "--port <n>": "Port to listen on at 127.0.0.1. Default: 0, a free port.",
      "--store <path>":
        "File or database in which sessions are kept, as for serve. All other flags of serve work too, except --http and --notify-*.",
      "--daemon <name>":
        "Start and reply in this named daemon, in place of the automatic one. With off: in this process.",
    },
    docs: "docs/console.md",
  },
  sessions: {
    usage: "sessions [<verb>] [flags]",
    about: "List, show, count, export, move and delete stored sessions, with or without a running server.",
    verbs: {
      list: "List sessions, newest first. The default verb.",
      "show ID": "Show one session. A unique prefix of its id is enough, here and below.",
      stats: "Show counts, durations, error rates and costs of all sessions. Also: sessions --stats.",
      "export ID": "Write the whole log of a session.",
      "delete ID...": "Delete sessions without a running turn, with their logs, after a confirmation.",
      "pack ID > FILE":
        "Write a session for another machine: log, transcript (not masked), options, and the files of its repository.",
      "unpack FILE": "Take a packed session over. It goes on with the next prompt.",
    },
    flags: {
      "list --status <status>": "Only sessions with this status, such as running or idle. Repeatable.",
      "list --cwd, stats --cwd <dir>": "Only sessions that work in this folder.",
      "list --since <time>": "Only sessions changed since then: 12h, 7d, 2026-01-31.",
      "stats --since <time>": "Only events since then.",
      "list --text <text>": "Only sessions with this text in the title, the folder or the first prompt.",
      "list --limit <n>": "Maximum number of sessions. Default: 50.",
      "list, show, stats --json": "Write JSON, for programs.",
      "export --format <format>": "jsonl (one event per line, as stored; the default) or markdown (to read).",
      "export --output <file>": "Write to a new file instead of stdout.",
      "export --force": "Overwrite the file.",
      "delete --older-than <time>": "Instead of ids: all sessions without an event since then, such as 30d.",
      "delete --yes": "Skip the confirmation.",
      "pack --output <file>": "Write to a new file, which only you can read, instead of stdout.",
      "pack --interrupt": "Interrupt a running turn first. Default: refuse.",
      "pack --no-files": "Leave out the files of the folder.",
      "unpack --cwd <dir>":
        "Folder for the files: new, empty, or a clean clone with the commit. Default: a new one here. Required without files.",
      "unpack --node <name>":
        "On a store of several machines: name of the server for this folder. Default: as for serve.",
      "unpack --keep-approvals": "Keep options that let tools run without asking. Only for files that you trust.",
      "--store <path>": "File or database in which sessions are kept, as for serve.",
      "--store-password-file <path>": "File with the password of the database, as for serve.",
      "--config <path>": "JSON file with settings, as for serve.",
    },
    docs: "docs/sessions.md",
  },
  rules: {
    usage: "rules try [flags]",
    about: "Replay the recorded requests and tool calls of all sessions against other rules.",
    more: " Changes nothing.",
    verbs: { try: "Print each decision that would change, then counts before and after." },
    flags: {
      "--allow-rules, --ask-rules, --deny-rules <rules>":
        "Rules to try, as for serve. A list that is not given is the one of your settings.",
      "--since <time>": "Only requests and calls since then: 12h, 7d, 2026-01-31.",
      "--json": "Write JSON, for programs.",
      "--store <path>": "File or database in which sessions are kept, as for serve.",
      "--store-password-file <path>": "File with the password of the database, as for serve.",
      "--config <path>": "JSON file with settings, as for serve.",
    },
    docs: "docs/approvals.md",
  },
  daemon: {
    usage: "daemon [<verb>] [flags]",
    about: "List and stop the daemons that run the sessions of your clients, read their logs, or run one yourself.",
    verbs: {
      run: "Serve clients on a local socket, in the foreground, until it is stopped or idle.",
      status: "List the daemons of this state folder. The default verb. The exit code is 1 when there is none.",
      "stop [NAME...]":
        "Drain and stop the daemon, or the named ones if there are several, and wait for their end. Asks if turns run.",
      "logs [NAME]": "Print the log of a daemon, also of one that has ended. Default: the one written last.",
    },
    flags: {
      "run --daemon <name>":
        "Name for clients that give the same flag. All flags of serve work too, except --http. Default: the automatic daemon, with settings of the server.",
      "run --ready-fd <n>": "Write one line to this file descriptor: ready, or why it did not start.",
      "stop --all": "Stop all daemons of this state folder.",
      "stop --yes": "Skip the confirmation.",
      "logs --follow, -f": "Go on with the lines that are appended.",
      "status, stop --json": "Write JSON, for programs.",
    },
    docs: "docs/daemon.md",
  },
  nodes: {
    usage: "nodes [<verb>] [flags]",
    about: "List and drain the servers of a store that several machines share, or share a folder among machines.",
    verbs: {
      list: "List the servers of the store. The default verb.",
      "drain NAME": "Let a server begin no more turns, and wait until it runs nothing.",
      "undrain NAME": "Let a server begin turns again.",
      "share DIR": "Mark a folder that several machines have at the same path, for --shared-folder.",
    },
    flags: {
      "list --json": "Write JSON, for programs.",
      "drain --no-wait": "Return at once; the server drains all the same.",
      "--store <url>": "Store of the machines, as for serve. Whoever may open it may drain its servers.",
      "--store-password-file <path>, --config <path>": "As for serve.",
    },
    docs: "docs/machines.md",
  },
  doctor: {
    usage: "doctor [flags]",
    about: "Check what would keep sessions from working, with a command that fixes each problem.",
    more: "\nExit code 1: errors, or what --fix could not fix.",
    flags: {
      "--json":
        'Write {"findings":[{"id","level","text","fix"}]}, after --fix with "fixed" and "notFixed". The levels are ok, warning and error.',
      "--fix":
        "Fix what is safe: modes of the state folder, stale sockets and temporary files. Install what the first session would.",
      "--store <path>, --http <address>, ...": "All flags of serve work too: name those that your servers have.",
    },
    docs: "docs/troubleshooting.md",
  },
  demo: {
    usage: "demo [flags]",
    about: "Run a Claude Code session against a built-in scripted model: no account, no cost.",
    flags: {
      "--live": "Use the model of your own Claude Code login instead, which costs a few cents.",
      "--json": "Write JSON Lines, for programs.",
      "--keep": "Keep the folder that the session worked in.",
    },
  },
  install: {
    usage: "install [<client>] [flags] [-- <flags of serve>]",
    about: "Write this server into the configuration of an MCP client, after showing the change.",
    more: " Without a client: list them.",
    listsClients: true,
    flags: {
      ...INSTALL_FLAGS,
      "--host <name>=ssh:<target>": "A server on another machine, tried first (docs/machines.md).",
      "--print": "Print what to paste, and write nothing.",
      "-- <flags>": "Flags of serve, which the client will pass to the server. Paths must be absolute.",
    },
    docs: "docs/clients.md",
  },
  uninstall: {
    usage: "uninstall <client> [flags]",
    about: "Remove this server from the configuration of an MCP client, after showing the change.",
    listsClients: true,
    flags: UNINSTALL_FLAGS,
    docs: "docs/clients.md",
  },
  token: {
    usage: "token [--json]",
    about: "Create a token for a client of an HTTP server and print it once. It is not stored.",
    flags: { "--json": "Write JSON, for programs." },
    docs: "docs/http.md",
  },
  help: {
    usage: "help [command]",
    about: "Print this text, or that of one command.",
    page: overview,
  },
  version: {
    usage: "version",
    about: "Print the version.",
  },
};
const NAMES = Object.keys(COMMANDS);

const aliases = (command: string, ...words: string[]) => words.map((word) => [word, command] as const);

/** Words people type for a command. */
const ALIASES: Readonly<Record<string, string>> = Object.fromEntries([
  ...aliases("serve", "start", "run", "mcp", "server", "stdio"),
  ...aliases("console", "ui", "web", "dashboard"),
  ...aliases("sessions", "list", "ls", "show", "stats", "export", "delete", "pack", "unpack"),
  ...aliases("rules", "try", "rehearse"),
  ...aliases("daemon", "status", "stop", "logs", "restart", "ps"),
  ...aliases("nodes", "node", "drain", "undrain", "share", "cluster", "machines"),
  ...aliases("doctor", "check", "diagnose", "login"),
  ...aliases("install", "setup", "init", "add", "configure", "config"),
  ...aliases("uninstall", "remove", "rm"),
]);

/** Returns the page of `command`, or the overview. Throws ConfigError for an unknown command. */
export function helpText(command = "help"): string {
  const found = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (!found) throw unknownCommand(command);
  return found.page?.() ?? pageOf(found);
}

function pageOf({ about, docs, flags, listsClients, more = "", usage, verbs }: Command): string {
  return joined(
    `Usage: claude-agents-mcp ${usage}\n\n${about}${more}`,
    listsClients && `Clients\n${indented(`${CLIENTS.map(({ id }) => id).join(", ")}.`)}`,
    verbs && entries("Verbs", verbs),
    flags && entries("Flags", flags),
    docs && `More: ${docs}.`,
  );
}

function overview(): string {
  const all = Object.entries(COMMANDS).map(([name, { about }]) => [name, about] as const);
  return joined(usageLines(), entries("Commands", Object.fromEntries(all)), examples(), settings(), FILES);
}

export function unknownCommand(name: string): ConfigError {
  return new ConfigError(
    `Unknown command "${name}".${didYouMean(name, NAMES, ALIASES)} "claude-agents-mcp help" lists all commands.`,
  );
}

function joined(...parts: readonly (string | undefined)[]): string {
  return `${parts.filter((part) => part !== undefined).join("\n\n")}\n`;
}

function usageLines(): string {
  return [
    "Usage: claude-agents-mcp [serve] [flags]",
    "       claude-agents-mcp sessions [<verb>] [flags]",
    "       claude-agents-mcp install | uninstall [<client>] [flags]",
    "       claude-agents-mcp doctor | demo | console | daemon | nodes | rules | token | help | version",
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
    "  claude-agents-mcp --turn-max-ms 600000 --toolsets=agent,chat",
  ].join("\n");
}

const FILES = "Each is a variable and a key of a file, too: docs/configuration.md in this package.";

/** Formats a name and its text, side by side if `name` leaves room. */
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
