import { whyOf } from "./failures.ts";
import { greet } from "./greet.ts";
import { endWithSignals, Proxy } from "./proxy.ts";
import { ConfigError } from "../config/error.ts";
import { stateFolder } from "../config/state-folder.ts";
import { socketFolders } from "../daemon/folders.ts";
import type { Patience } from "../daemon/patience.ts";
import { checkName } from "../daemon/socket.ts";
import { depthAbove, depthIn } from "../security/ancestors.ts";

/** `serve --daemon-socket NAME`: connects a client to a daemon that its operator has started under this name. */

/** How long its operator may take to start it again, ms. */
const START_MS = 3_000;

/** Resolves to the exit code when the client is gone. Throws ConfigError when there is no daemon to begin with. */
export async function connectToDeclared(argv: readonly string[]): Promise<number> {
  const name = readName(argv);
  refuseNested();
  const folders = await socketFolders(stateFolder(process.env, process.platform));
  const absent = (why: string) => `The daemon "${name}" is not there: ${why}. ${adviceFor(name)}`;
  const source = {
    startMs: START_MS,
    connect: async ({ leftMs }: Patience) => greet({ folders, name }, leftMs),
    absent,
  };
  const proxy = new Proxy(source, process.stdout);
  endWithSignals();
  try {
    await proxy.connect();
  } catch (error) {
    throw new ConfigError(`--daemon-socket ${name}: ${whyOf(error)}. ${adviceFor(name)}`, error);
  }
  await proxy.pass(process.stdin);
  process.exit(0);
}

function adviceFor(name: string): string {
  return `Start it: claude-agents-mcp daemon run --daemon-socket ${name}. \`claude-agents-mcp daemon status\` lists daemons.`;
}

function readName(argv: readonly string[]): string {
  const [word = "", value = "", ...rest] = argv.flatMap((each) =>
    each.split(/(?<=^--daemon-socket)=(.*)/s).slice(0, 2),
  );
  if (word !== "--daemon-socket" || rest.length > 0) {
    const others = word === "--daemon-socket" ? rest : argv;
    throw new ConfigError(
      `${others[0] ?? ""} does not go with --daemon-socket: settings are those of the daemon. Give it to \`daemon run\`.`,
    );
  }
  try {
    return checkName(value);
  } catch (error) {
    throw new ConfigError(`--daemon-socket ${error instanceof Error ? error.message : String(error)}.`, error);
  }
}

/** A session's shell is the same user; the daemon would not know how deep it is. */
function refuseNested(): void {
  if (Math.max(depthIn(process.env), depthAbove(process.pid)) === 0) return;
  throw new ConfigError("--daemon-socket: this runs inside a session of claude-agents-mcp, which may start no others.");
}
