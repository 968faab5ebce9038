import { exitOnSignals } from "./client-end.ts";
import { namedDaemon } from "./own-server.ts";
import { Proxy, type DaemonSource, type ServeHere } from "./proxy.ts";
import { StaticAnswers } from "./static-answers.ts";
import { constants } from "../config/constants.ts";

/** `serve` with a daemon: connects the client to its named daemon, or to the automatic daemon. */

/** Exported again to save loading a file, because every start needs both modules. */
export { reasonForOwnServer } from "./own-server.ts";

export interface ProxyClient {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  /** Script of the command line. */
  readonly main: string;
  /** Serves the client in this process, without a daemon. */
  readonly serveHere: ServeHere;
  /** Rejects with `ConfigError` for arguments that `serve` refuses. */
  readonly check: () => Promise<void>;
}

/**
 * Resolves to the exit code after the end of the client. Rejects with `ConfigError` if the client cannot be served, after
 * telling the client.
 */
export async function connectToDaemon(client: ProxyClient): Promise<number> {
  const name = namedDaemon({ argv: client.argv, env: process.env });
  return name === undefined ? connectToAutomatic(client) : connectToNamed(client, name);
}

async function connectToAutomatic({ argv, check, main, serveHere }: ProxyClient): Promise<number> {
  // Checks at once for a person at a terminal. A client learns of faults with its first message.
  if (process.stdin.isTTY) await check();
  const stopEnding = exitOnSignals();
  const source = lazyAutomaticDaemon(argv, main);
  const proxy = new Proxy(source, process.stdout, {
    answers: new StaticAnswers({ argv, env: process.env }),
    serveHere: async (why) => {
      // The server handles signals itself.
      stopEnding();
      return serveHere(why);
    },
  });
  await proxy.pass(process.stdin);
  if (!proxy.wasUsed) await check();
  process.exit(0);
}

/** Neither checks nor answers, because only the named daemon knows its own settings. */
async function connectToNamed({ argv }: ProxyClient, name: string): Promise<number> {
  const { NamedDaemon } = await import("./named-daemon.ts");
  const source = new NamedDaemon(name, argv);
  const proxy = new Proxy(source, process.stdout);
  exitOnSignals();
  if (process.stdin.isTTY) await proxy.connectOrFail();
  await proxy.pass(process.stdin);
  if (!proxy.wasUsed) await proxy.connectOrFail();
  process.exit(0);
}

/** Loads `AutomaticDaemon` after the first static answers, which need none of its code. */
function lazyAutomaticDaemon(argv: readonly string[], main: string): DaemonSource {
  let loading: Promise<DaemonSource> | undefined;
  const load = async () => {
    const { AutomaticDaemon } = await import("./automatic-daemon.ts");
    return new AutomaticDaemon(argv, main);
  };
  return {
    startMs: constants().daemonStartMs,
    connect: async (...how) => (await (loading ??= load())).connect(...how),
    // Returns the bare reason, because without a daemon this process serves the client.
    absent: (why) => why,
  };
}
