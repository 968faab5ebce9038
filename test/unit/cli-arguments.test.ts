import { expect, it } from "vitest";

import { serveConsole } from "../../src/cli/console.ts";
import { daemon } from "../../src/cli/daemon.ts";
import { demo } from "../../src/cli/demo.ts";
import { doctor } from "../../src/cli/doctor.ts";
import { helpText } from "../../src/cli/help.ts";
import { nodes } from "../../src/cli/nodes.ts";
import { rules } from "../../src/cli/rules.ts";
import { sessions } from "../../src/cli/sessions.ts";
import { token } from "../../src/cli/token.ts";
import { ConfigError } from "../../src/config/error.ts";

/** Invalid command lines; `test/server/cli.test.ts` and `sessions.test.ts` beside it show the resulting output. */

const COMMANDS: Readonly<Record<string, (argv: string[]) => unknown>> = {
  console: serveConsole,
  daemon,
  demo,
  doctor,
  help: ([word]) => helpText(word),
  nodes,
  rules,
  sessions,
  token,
};

const LISTED = '"claude-agents-mcp help" lists all commands.';

it.each<[string[], string]>([
  [["sessions", "list", "--max-wait-ms", "5"], "sessions list: Unknown option '--max-wait-ms'. It takes --status, "],
  [["sessions", "list", "--status", "busy"], '--status is "busy": must be one of running, waiting_permission, idle, '],
  [["sessions", "list", "--limit", "0"], '--limit is "0": must be a whole number from 1 to 10000.'],
  [
    ["sessions", "list", "--since", "soon"],
    '--since is "soon": must be like 30m, 12h, 7d or 2w, or a date like 2026-01-31.',
  ],
  [["sessions", "list", "x"], "sessions list: Unexpected argument 'x'. It takes --status, --cwd, "],
  [
    ["sessions", "show", "x", "--jsno"],
    "sessions show: Unknown option '--jsno'. Did you mean --json? It takes --json, --store, --store-password-file, --config, an id.",
  ],
  [["sessions", "list", "--store", "memory:"], 'The store is "memory:": '],
  [["sessions", "list", "--store="], '--store is "": must be '],
  [["sessions", "list", "--config", "/nonexistent.json"], "The file of --config cannot be read: "],
  [["sessions", "show"], "sessions show needs the id of a session, or its start."],
  [["sessions", "show", "a", "b"], "sessions show takes one id, not 2."],
  [["sessions", "export", "x", "--format", "pdf"], '--format is "pdf": must be one of jsonl, markdown.'],
  [["sessions", "export", "x", "--force"], "--force requires --output. Add it."],
  [
    ["sessions", "delete", "x", "--older-than", "30d"],
    "sessions delete needs the ids of sessions, or else --older-than, ",
  ],
  [["sessions", "lst"], 'Unknown verb "lst". Did you mean list? sessions takes list, show, stats, export, delete, '],
  [["sessions", "rm"], 'Unknown verb "rm". Did you mean delete? '],
  [["sessions", "1f0c"], 'Unknown verb "1f0c". Did you mean show 1f0c? '],
  [["sessions", "--statu", "idle"], "sessions list: Unknown option '--statu'. Did you mean --status? "],
  [["sessions", "--stats", "--sinse", "7d"], "sessions stats: Unknown option '--sinse'. Did you mean --since? "],
  [["rules", "--json"], "rules needs a verb: rules try. "],
  [["rules", "tyr"], 'Unknown verb "tyr". rules takes try. '],
  [["rules", "try", "--allow-rule", "Read"], "rules try: Unknown option '--allow-rule'. Did you mean --allow-rules? "],
  [
    ["rules", "try", "--deny-rules", "Write(a)"],
    "--deny-rules cannot be used: the rule Write(a) has a path, which only ",
  ],
  [["rules", "try", "--since", "soon"], '--since is "soon": must be like 30m, '],
  [["rules", "try", "--store", "memory:"], 'The store is "memory:": '],
  [["nodes", "dran"], 'nodes: unknown verb "dran". Did you mean drain? It takes list, drain, undrain, share.'],
  [["nodes", "--jsno"], "nodes list: Unknown option '--jsno'. Did you mean --json? It takes --json, --store, "],
  [["nodes", "drain"], 'nodes drain takes the name of one node. "claude-agents-mcp nodes" lists all.'],
  [["nodes", "undrain", "a", "--no-wait"], "nodes undrain: Unknown option '--no-wait'. It takes --store, "],
  [["nodes", "share", "a", "b"], "nodes share takes one folder."],
  [["nodes", "--store", "memory:"], 'The store is "memory:": '],
  [["help", "drain"], `Unknown command "drain". Did you mean nodes? ${LISTED}`],
  [["daemon", "start"], 'daemon: unknown verb "start". Did you mean run? It takes run, status, stop and logs.'],
  [["daemon", "--jsno"], "daemon status: Unknown option '--jsno'. Did you mean --json? It takes --json."],
  [["daemon", "stop", "--al"], "daemon stop: Unknown option '--al'. Did you mean --all? It takes --all, --json, "],
  [["daemon", "run", "--redy-fd", "3"], "daemon run: unknown flag --redy-fd. Did you mean --ready-fd? "],
  [["daemon", "run", "--max-life", "3"], "Unknown flag --max-life. Did you mean --max-live? "],
  [["console", "--prot=1"], "console: unknown flag --prot. Did you mean --port? "],
  [["doctor", "--fxi"], "doctor: unknown flag --fxi. Did you mean --fix? "],
  [["doctor", "now"], 'doctor: unexpected argument "now". It takes --json, --fix and the flags of serve.'],
  [["doctor", "fix"], 'doctor: unexpected argument "fix". Did you mean --fix? It takes --json, --fix and the flags'],
  [["demo", "live"], "demo: Unexpected argument 'live'. Did you mean --live? It takes --live, --json, --keep."],
  [["token", "--name"], "token: Unknown option '--name'. It takes --json."],
  [["help", "status"], `Unknown command "status". Did you mean daemon? ${LISTED}`],
  [["help", "setup"], `Unknown command "setup". Did you mean install? ${LISTED}`],
  [["help", "DOCTOR"], `Unknown command "DOCTOR". Did you mean doctor? ${LISTED}`],
  [["console", "--hlep"], "Unknown flag --hlep. Did you mean --help? "],
  [["daemon", "--vresion"], "daemon status: Unknown option '--vresion'. Did you mean --version? It takes --json."],
  [["help", "xyzzy"], `Unknown command "xyzzy". ${LISTED}`],
])("the command line %j is refused", async ([command = "", ...args], beginning) => {
  const run = async () => Promise.resolve(COMMANDS[command]?.(args));
  const refused: unknown = await run().catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ConfigError);
  const { message } = refused as ConfigError;
  expect(message.slice(0, beginning.length)).toBe(beginning);
  expect(message).not.toContain("\n");
});
