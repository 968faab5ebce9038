import { once } from "node:events";
import { ConfigError } from "../../config/error.ts";
import { stateFolder } from "../../config/state-folder.ts";
import { socketFolders } from "../../daemon/folders.ts";
import { connectTo, isAbsent, socketsIn } from "../../daemon/socket.ts";
import { firstLine, objectIn, PROTOCOL, type ClientHello, type DaemonStatus } from "../../daemon/wire.ts";

/** The daemons of this state folder, as they say themselves. */

/** What a daemon may take to answer, ms. */
const ANSWER_MS = 5_000;

export interface Found extends Omit<DaemonStatus, "traits"> {
  readonly name: string;
  /** Variables, flags and traits in which it is unlike another daemon. */
  readonly differs: readonly string[];
}

/** In the order of their start. Those that do not answer are named on stderr. */
export async function findDaemons(): Promise<Found[]> {
  const places = await socketsIn(await socketFolders(stateFolder(process.env, process.platform), process.env));
  const asked = places.map(async ({ name, path }) => {
    try {
      const about = await ask(path, "status");
      return about ? [{ name, ...about }] : [];
    } catch {
      process.stderr.write(`claude-agents-mcp: the daemon "${name}" does not answer.\n`);
      return [];
    }
  });
  const found = (await Promise.all(asked)).flat().toSorted((one, other) => (one.startedAt < other.startedAt ? -1 : 1));
  return found.map(({ traits, ...each }) => ({ ...each, differs: differences(traits, found) }));
}

function differences(traits: DaemonStatus["traits"], all: readonly DaemonStatus[]): string[] {
  const names = new Set(all.flatMap((each) => Object.keys(each.traits)));
  return [...names].filter((name) => all.some((other) => other.traits[name] !== traits[name])).toSorted();
}

/** Undefined where nothing listens. Rejects when the daemon does not answer. With "stop" it resolves when the daemon has ended. */
export async function ask(path: string, purpose: ClientHello["purpose"]): Promise<DaemonStatus | undefined> {
  const socket = await connectTo(path).catch((error: unknown) => {
    if (isAbsent(error)) return undefined;
    throw error;
  });
  if (!socket) return undefined;
  const hello: ClientHello = { protocol: PROTOCOL, purpose, cwd: "/", commandLine: [] };
  try {
    socket.write(`${JSON.stringify(hello)}\n`);
    const about = objectIn(await firstLine(socket, ANSWER_MS));
    if (typeof about["refused"] === "string") throw new Error(about["refused"]);
    if (purpose === "stop") await once(socket.resume(), "close");
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this program
    return { traits: {}, turns: [], ...about } as unknown as DaemonStatus;
  } finally {
    socket.destroy();
  }
}

/** Those with these names, or the only one. Throws ConfigError where a name is unknown, or where it is not clear which is meant. */
export function chosen(verb: string, found: readonly Found[], names: readonly string[]): Found[] {
  const unknown = names.find((name) => !found.some((each) => each.name === name));
  if (unknown !== undefined) {
    throw new ConfigError(`daemon ${verb}: no daemon is named "${unknown}". \`daemon status\` lists them.`);
  }
  if (names.length === 0 && found.length > 1) {
    const all = found.map(({ name }) => name).join(", ");
    throw new ConfigError(
      `daemon ${verb}: ${String(found.length)} daemons run: ${all}. Name those that you mean${verb === "stop" ? ", or use --all" : ""}.`,
    );
  }
  return found.filter(({ name }) => names.length === 0 || names.includes(name));
}
