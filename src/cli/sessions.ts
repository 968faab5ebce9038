import { ConfigError } from "../config/error.ts";
import { didYouMean } from "../domain/suggest.ts";
import { remove } from "./sessions/delete.ts";
import { exportLog } from "./sessions/export.ts";
import { list } from "./sessions/list.ts";
import { pack } from "./sessions/pack.ts";
import { show } from "./sessions/show.ts";
import { stats } from "./sessions/stats.ts";
import { withFaultLines } from "./sessions/store.ts";
import { unpack } from "./sessions/unpack.ts";

/** Runs `claude-agents-mcp sessions VERB` on the store, with or without a running server. Resolves to the exit code. */
export async function sessions(argv: string[]): Promise<number> {
  const [verb = "list", ...rest] = withVerb(argv);
  const run = VERBS.get(verb);
  if (!run) throw unknownVerb(verb);
  return withFaultLines(async () => run(rest));
}

const VERBS: ReadonlyMap<string, (argv: string[]) => Promise<number>> = new Map([
  ["list", list],
  ["show", show],
  ["stats", stats],
  ["export", exportLog],
  ["delete", remove],
  ["pack", pack],
  ["unpack", unpack],
]);

/** Adds the default verb `list`. Turns `--stats` among flags into the verb `stats`. */
function withVerb(argv: string[]): string[] {
  if (argv[0]?.startsWith("-") === false) return argv;
  const rest = argv.filter((word) => word !== "--stats");
  return [rest.length < argv.length ? "stats" : "list", ...rest];
}

/** Words that people type for a verb. */
const ALIASES = {
  ls: "list",
  get: "show",
  view: "show",
  log: "show",
  logs: "show",
  dump: "export",
  save: "export",
  rm: "delete",
  remove: "delete",
  move: "pack",
  import: "unpack",
};

function unknownVerb(verb: string): ConfigError {
  const known = [...VERBS.keys()];
  // An id of a session, or its prefix: the verb `show` was left out.
  const meant = /^[\da-f][\da-f-]{3,}$/i.test(verb) ? ` Did you mean show ${verb}?` : didYouMean(verb, known, ALIASES);
  const advice = `"claude-agents-mcp help sessions" says more.`;
  return new ConfigError(`Unknown verb "${verb}".${meant} sessions takes ${known.join(", ")}. ${advice}`);
}
