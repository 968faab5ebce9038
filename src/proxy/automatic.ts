import { endWithSignals } from "./client-end.ts";
import { namedDaemon } from "./own-server.ts";
import { Proxy, type DaemonSource, type ServeHere } from "./proxy.ts";
import { StaticAnswers } from "./static-answers.ts";
import { constants } from "../config/constants.ts";

/** `serve` where nothing speaks against a daemon: connects the client to the one that it names, or to the automatic one. */

/** Both are needed at each start: one file less to load. */
export { reasonForOwnServer } from "./own-server.ts";

export interface Client {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  /** The script of the command line. */
  readonly main: string;
  /** Serves the client in this process. */
  readonly serveHere: ServeHere;
  /** Throws ConfigError for arguments that `serve` does not take. */
  readonly check: () => Promise<void>;
}

/** Resolves to the exit code when the client is gone. Throws ConfigError, which the client was told, where it cannot be served. */
export async function connectToDaemon(client: Client): Promise<number> {
  const name = namedDaemon({ argv: client.argv, env: process.env });
  return name === undefined ? connectAutomatically(client) : connectToNamed(client, name);
}

async function connectAutomatically({ argv, check, main, serveHere }: Client): Promise<number> {
  // A person who types this sees what is wrong at once; a client with its first message.
  if (process.stdin.isTTY) await check();
  const stopEnding = endWithSignals();
  const source = automaticDaemon(argv, main);
  const proxy = new Proxy(source, process.stdout, {
    answers: new StaticAnswers({ argv, env: process.env }),
    serveHere: async (why) => {
      // The server has its own way to end.
      stopEnding();
      return serveHere(why);
    },
  });
  await proxy.pass(process.stdin);
  if (!proxy.wasUsed) await check();
  process.exit(0);
}

/** Its settings are the daemon's, which alone can check and answer. */
async function connectToNamed({ argv }: Client, name: string): Promise<number> {
  const { NamedDaemon } = await import("./named-daemon.ts");
  const source = new NamedDaemon(name, argv);
  const proxy = new Proxy(source, process.stdout);
  endWithSignals();
  if (process.stdin.isTTY) await proxy.meet();
  await proxy.pass(process.stdin);
  if (!proxy.wasUsed) await proxy.meet();
  process.exit(0);
}

/** The code that finds a daemon, or starts it, is loaded behind the first answers, which need none of it. */
function automaticDaemon(argv: readonly string[], main: string): DaemonSource {
  let loading: Promise<DaemonSource> | undefined;
  const load = async () => {
    const { AutomaticDaemon } = await import("./automatic-daemon.ts");
    return new AutomaticDaemon(argv, main);
  };
  return {
    startMs: constants().daemonStartMs,
    connect: async (...how) => (await (loading ??= load())).connect(...how),
    // This process serves where there is no daemon.
    absent: (why) => why,
  };
}
