import { setTimeout as sleep } from "node:timers/promises";
import { resolve } from "node:path";
import { ConfigError } from "../config/error.ts";
import { AppError } from "../domain/error.ts";
import { didYouMean } from "../domain/suggest.ts";
import { nodeState, presentNodes, withOtherUsers } from "../engine/nodes.ts";
import { realpath } from "../security/files/limited.ts";
import { makeMarker, markerProblem } from "../security/files/volume-marker.ts";
import { readArguments, type StoreFlags } from "./sessions/arguments.ts";
import { parseOwnFlags } from "./own-flags.ts";
import { table } from "./sessions/stats.ts";
import { withFaultLines, withStoreIfAny, type Store } from "./sessions/store.ts";
import { count, isoTime, jsonLine, roughDuration } from "./sessions/text-format.ts";

/** `claude-agents-mcp nodes VERB`: lists and drains the servers of a store that several machines share. */

type Machines = NonNullable<Store["machines"]>;
type NodeRecord = Awaited<ReturnType<Machines["nodes"]>>[number];

/** Resolves to the exit code. Throws ConfigError. */
export async function nodes(argv: string[]): Promise<number> {
  const [verb = "list", ...rest] = argv[0]?.startsWith("-") === true ? ["list", ...argv] : argv;
  const run = VERBS.get(verb);
  if (run) return withFaultLines(async () => run(rest));
  const known = [...VERBS.keys()];
  throw new ConfigError(
    `nodes: unknown verb "${verb}".${didYouMean(verb, known, ALIASES)} It takes ${known.join(", ")}.`,
  );
}

const VERBS: ReadonlyMap<string, (argv: string[]) => Promise<number>> = new Map([
  ["list", list],
  ["drain", async (argv) => setDraining("drain", argv)],
  ["undrain", async (argv) => setDraining("undrain", argv)],
  ["share", share],
]);

/** Words that people type for a verb. */
const ALIASES = { ls: "list", status: "list", ps: "list", cordon: "drain", stop: "drain", uncordon: "undrain" };

const BOOLEAN = { type: "boolean" } as const;

async function list(argv: string[]): Promise<number> {
  const { values } = readArguments("nodes list", argv, { options: { json: BOOLEAN } });
  return withMachines(values, async (machines) => {
    const found = presentNodes(await machines.nodes());
    process.stdout.write(values.json === true ? jsonLine({ nodes: found.map(nodeObject) }) : nodeTable(found));
    return 0;
  });
}

/** Returns the facts of a node, by wire name. */
function nodeObject(node: NodeRecord) {
  const { folders, isAlive: alive, isDraining: draining, labels, maxLive, name, nodeId, sessions, version } = node;
  const sharedFolders = node.sharedFolders.map(({ folder, volume }) => ({ folder, volume }));
  const about = { name, alive, draining, version, sessions, maxLive, labels, folders, sharedFolders };
  return { ...about, lastSeenAt: isoTime(node.seenAt), nodeId };
}

const HEAD = ["NAME", "STATE", "VERSION", "LABELS", "SHARED FOLDERS", "SESSIONS", "SLOTS", "SEEN"];

function nodeTable(found: readonly NodeRecord[]): string {
  if (found.length === 0) return "No node has used this store on the last day.\n";
  const lines = found.map((node) => [
    node.name,
    nodeState(node),
    node.version,
    Object.entries(node.labels)
      .map(([name, value]) => `${name}=${value}`)
      .join(","),
    node.sharedFolders.map(({ folder }) => folder).join(","),
    String(node.sessions),
    String(node.maxLive),
    roughDuration(Date.now() - node.seenAt),
  ]);
  const odd = found.filter((node) => nodeState(node) === "alive" && withOtherUsers(found, node).length > 0);
  const names = odd.map(({ name }) => name).join(", ");
  const warning = odd.length === 0 ? "" : `\nThese nodes do not have the same users (principals): ${names}.\n`;
  return table(HEAD, lines, FIRST_NUMBER) + warning;
}

/** Columns from this one on are aligned to the right. */
const FIRST_NUMBER = 5;

async function setDraining(verb: "drain" | "undrain", argv: string[]): Promise<number> {
  const command = `nodes ${verb}`;
  const options = verb === "drain" ? { "no-wait": BOOLEAN } : {};
  const { positionals, values } = readArguments(command, argv, { options, words: "a name" });
  const [name, ...others] = positionals;
  if (name === undefined || others.length > 0)
    throw new ConfigError(`${command} takes the name of one node. "claude-agents-mcp nodes" lists all.`);
  return withMachines(values, async (machines) => {
    if (verb === "undrain") await refuseOtherUsers(machines, name);
    if ((await machines.setDraining(name, verb === "drain")) === 0) throw await unknownNode(machines, name);
    if (verb === "undrain") process.stdout.write(`${name} begins turns again.\n`);
    else await drain(machines, name, values["no-wait"] !== true);
    return 0;
  });
}

async function unknownNode(machines: Machines, name: string): Promise<AppError> {
  const names = [...new Set(presentNodes(await machines.nodes()).map((node) => node.name))];
  const known = names.length === 0 ? "No node has used this store on the last day" : `Nodes: ${names.join(", ")}`;
  return new AppError("INVALID_ARGUMENT", `There is no node ${name}.${didYouMean(name, names)} ${known}.`);
}

/** Interval between looks at a node that is drained, ms. */
const LOOK_MS = 1_000;

/** Waits until the node owns no session, unless `waits` is false. The node drains also without this process. */
async function drain(machines: Machines, name: string, waits: boolean): Promise<void> {
  const advice = waits ? " Waiting for its turns; Control-C ends only the waiting." : "";
  process.stdout.write(`${name} begins no more turns; those that run may end.${advice}\n`);
  let shown = -1;
  while (waits) {
    const owned = (await machines.nodes()).filter((node) => node.isAlive && node.name === name);
    const sessions = owned.reduce((sum, node) => sum + node.sessions, 0);
    if (sessions === 0) break;
    if (sessions !== shown) process.stdout.write(`${count(sessions, "session")} left.\n`);
    shown = sessions;
    await sleep(LOOK_MS);
  }
  if (waits) process.stdout.write(`${name} runs nothing any more and may be stopped.\n`);
}

async function refuseOtherUsers(machines: Machines, name: string): Promise<void> {
  const all = await machines.nodes();
  const named = all.filter((node) => node.name === name && node.isAlive);
  const other = named.flatMap((node) => withOtherUsers(all, node)).find((node) => node.name !== name);
  if (!other) return;
  const advice = `Restart ${name} with the same principals and oauth, or drain ${other.name}.`;
  throw new AppError("INVALID_ARGUMENT", `${name} has other users than ${other.name}. ${advice}`);
}

async function withMachines(flags: StoreFlags, work: (machines: Machines) => Promise<number>): Promise<number> {
  const none = (what: string): never => {
    const advice = "A store of several machines is a PostgreSQL database: --store postgres://HOST/DATABASE.";
    throw new AppError("INVALID_ARGUMENT", `${what} belongs to one machine and has no nodes. ${advice}`);
  };
  return withStoreIfAny(
    flags,
    async ({ machines }) => (machines ? work(machines) : none("This store")),
    (file) => none(`The store ${file}`),
  );
}

async function share(argv: string[]): Promise<number> {
  const { positionals } = parseOwnFlags("nodes share", argv, { options: {}, words: "a folder" });
  const [folder = "", ...others] = positionals;
  if (folder === "" || others.length > 0) throw new ConfigError("nodes share takes one folder.");
  try {
    const real = await realpath(resolve(folder));
    const { id, isNew } = await makeMarker(real);
    const done = isNew ? `${real} is a shared folder now` : `${real} was a shared folder already`;
    const advice = `Start each server that has it at this path with: --shared-folder ${real}`;
    process.stdout.write(`${done}, with the id ${id}.\n${advice}\n`);
    return 0;
  } catch (error) {
    throw new AppError("INVALID_ARGUMENT", `${folder} cannot be shared: ${markerProblem(error)}.`);
  }
}
