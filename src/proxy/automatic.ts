import type { AutomaticDaemon } from "./automatic-daemon.ts";
import { startMsOf } from "./own-server.ts";
import { endWithSignals, Proxy, type DaemonSource, type ServeHere } from "./proxy.ts";
import { StaticAnswers } from "./static-answers.ts";

/** `serve` where nothing speaks against a daemon: connects the client to the one of its settings, and starts it if there is none. */

/** Both are needed at each start: one file less to load. */
export { reasonForOwnServer } from "./own-server.ts";

export interface Automatic {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  /** The script of the command line. */
  readonly main: string;
  /** Serves the client in this process. */
  readonly serveHere: ServeHere;
  /** Throws ConfigError for arguments that `serve` does not take. */
  readonly check: () => Promise<void>;
}

/** Resolves to the exit code when the client is gone. */
export async function connectAutomatically({ argv, check, main, serveHere }: Automatic): Promise<number> {
  // A person who types this sees what is wrong at once; a client with its first message, by the server that fails to start.
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

/** The code that finds a daemon, or starts it, is loaded behind the first answers, which need none of it. */
function automaticDaemon(argv: readonly string[], main: string): DaemonSource {
  let loading: Promise<AutomaticDaemon> | undefined;
  const load = async () => {
    const { AutomaticDaemon } = await import("./automatic-daemon.ts");
    return new AutomaticDaemon(argv, main);
  };
  return {
    startMs: startMsOf({ argv, env: process.env }),
    connect: async (patience) => (await (loading ??= load())).connect(patience),
    // This process serves where there is no daemon.
    absent: (why) => why,
  };
}
