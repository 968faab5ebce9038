import { hasTerminal, isConfirmed } from "./confirm.ts";
import { prepareHost, type Prepared } from "./install-host.ts";
import { listClients } from "./install-list.ts";
import { parseOwnFlags } from "./own-flags.ts";
import { nestingDepth } from "./preflight.ts";
import { childEnvironment } from "../claude/child-environment.ts";
import { findLogin } from "../claude/login.ts";
import { ConfigError } from "../config/error.ts";
import { SETTINGS } from "../config/schema.ts";
import { stateFolder } from "../config/state-folder.ts";
import { daemonEnvironment } from "../daemon/daemon-environment.ts";
import { PRODUCT } from "../domain/names.ts";
import { didYouMean } from "../domain/suggest.ts";
import { fileOf, formatOf, planInstall, planUninstall, withEntry, type Aim, type Change } from "../install/change.ts";
import { CLIENTS, clientsMeant, type Client, type Scope } from "../install/clients.ts";
import { diffText } from "../install/diff.ts";
import { UnusableFile, type Entry } from "../install/format.ts";
import { invocationOf, isNpx, isPortable, type Running } from "../install/invocation.ts";
import { createPlaces } from "../install/places.ts";
import { entryConfig, longestCallMs, mayGiveUp, timeoutEntry } from "../install/server-args.ts";
import { checkHostName, entryName, parseHost, type SshHost } from "../install/ssh/host.ts";
import { HostProblem } from "../install/ssh/run-ssh.ts";
import { createMasker } from "../log/mask.ts";

/** `claude-agents-mcp install CLIENT` adds this server to the client's configuration, `uninstall` removes it. */

interface Flags {
  readonly client: string | undefined;
  readonly scope: string;
  readonly host: string | undefined;
  readonly json: boolean;
  readonly print: boolean;
  readonly yes: boolean;
  /** Arguments after `--`. */
  readonly serverArgs: readonly string[];
}

const FLAGS = {
  scope: { type: "string" },
  host: { type: "string" },
  json: { type: "boolean" },
  yes: { type: "boolean" },
} as const;

export async function install(argv: string[]): Promise<number> {
  const flags = readFlags("install", argv);
  const host = flags.host === undefined ? undefined : parseHost(flags.host);
  if (flags.client === undefined) {
    if (host) throw new ConfigError("install --host needs a client.");
    return listClients(flags.json, runningAs);
  }
  const aim = chooseAim("install", flags, host?.name);
  if (!flags.print) refuseNested("install");
  return reportProblems(async () => {
    const { command, longestMs, notes, there } = await prepare(aim, flags.serverArgs, host);
    const entry = { ...aim.client.entry(command), ...timeoutEntry(aim.client, longestMs) };
    if (flags.print) return printEntry(aim, entry, { notes, json: flags.json });
    const change = await planInstall(aim, entry);
    return carryOut({ aim, change, flags, notes, verb: "install", there });
  });
}

/** Returns the command of the entry. Tries a host first. Throws ConfigError for flags that the server would refuse. */
async function prepare(aim: Aim, serverArgs: readonly string[], host: SshHost | undefined): Promise<Prepared> {
  if (host) {
    const prepared = await prepareHost(aim, host, serverArgs);
    return { ...prepared, notes: [...prepared.notes, ...notesOnTimeout(aim, prepared.longestMs)] };
  }
  const longestMs = longestCallMs(entryConfig({ argv: serverArgs, env: daemonEnvironment(process.env) }));
  const command = await invocationOf(runningAs(aim.scope), serverArgs);
  const notes = [...notesOn(aim, command), ...notesOnTimeout(aim, longestMs), ...(await loginNotes())];
  return { command, longestMs, notes };
}

export async function uninstall(argv: string[]): Promise<number> {
  const flags = readFlags("uninstall", argv);
  if (flags.serverArgs.length > 0) throw new ConfigError("uninstall takes no flags for the server.");
  const [host] = flags.host?.split("=") ?? [];
  if (host !== undefined) checkHostName(host);
  const aim = chooseAim("uninstall", flags, host);
  refuseNested("uninstall");
  return reportProblems(async () => {
    const change = await planUninstall(aim);
    return carryOut({ aim, change, flags, notes: [], verb: "uninstall" });
  });
}

type Verb = "install" | "uninstall";

interface Step {
  readonly verb: Verb;
  readonly aim: Aim;
  readonly change: Change;
  readonly flags: Flags;
  readonly notes: readonly string[];
  readonly there?: Prepared["there"];
}

async function carryOut(step: Step): Promise<number> {
  const { aim, change, flags, verb } = step;
  const { after, before, file } = change;
  if (after === before) {
    const state = verb === "install" ? "has the entry already" : "has no entry of this server";
    return printResult(step, { changed: false }, `${file} ${state}. Nothing to do.`);
  }
  if (!flags.yes && !(await isAgreed(step))) return printResult(step, { changed: false }, "Nothing was written.");
  const copy = await change.perform();
  const done = after === undefined ? `Deleted ${file}, which install had created.` : `Wrote ${file}.`;
  const kept = copy === undefined ? "" : ` The former file: ${copy}`;
  const next = `Restart ${aim.client.title}, or let it reload its MCP servers.`;
  return printResult(step, { changed: true, ...(copy === undefined ? {} : { copy }) }, `${done}${kept}\n${next}`);
}

function printResult(
  { aim, change, flags, notes, there }: Step,
  result: { changed: boolean; copy?: string },
  words: string,
): number {
  const { client, scope } = aim;
  const lines = [words, ...notes.map((note) => `Note: ${note}`)];
  const report = { client: client.id, scope, file: change.file, ...result, notes, ...(there && { host: there }) };
  process.stdout.write(`${flags.json ? JSON.stringify(report) : lines.join("\n")}\n`);
  return 0;
}

/** Shows the change and asks. Throws ConfigError without a terminal. */
async function isAgreed({ change, verb }: Step): Promise<boolean> {
  const { after = "", before = "", file } = change;
  const masker = createMasker(process.env);
  const what =
    change.after === undefined ? "would be deleted" : change.before === undefined ? "would be created" : "would change";
  process.stderr.write(`${file} ${what}:\n\n${diffText({ before, after, mask: (text) => masker.text(text) })}\n`);
  if (hasTerminal()) return isConfirmed("Write?");
  const other = verb === "install" ? " --print prints the entry instead." : "";
  throw new ConfigError(`${verb}: nothing was written. Without a terminal to confirm on, --yes is required.${other}`);
}

/** Prints the entry as a whole file with nothing else, as in `examples/clients`. */
async function printEntry(
  aim: Aim,
  entry: Entry,
  { json, notes }: { json: boolean; notes: readonly string[] },
): Promise<number> {
  const { client, host, scope } = aim;
  const text = withEntry(aim, await formatOf(client), { text: "", entry });
  const file = fileOf(aim) ?? "";
  const link = client.link?.(entry, entryName(host));
  if (json) {
    const report = { client: client.id, scope, file, text, entry, ...(link === undefined ? {} : { link }), notes };
    process.stdout.write(`${JSON.stringify(report)}\n`);
    return 0;
  }
  process.stdout.write(text);
  const or = link === undefined ? [] : [`Or open this link: ${link}`];
  process.stderr.write(["", `Goes into ${file}`, ...or, ...notes.map((note) => `Note: ${note}`), ""].join("\n"));
  return 0;
}

function notesOn({ client, scope }: Aim, command: Prepared["command"]): string[] {
  const notes: string[] = [];
  if (scope === "project" && !isPortable(command)) {
    notes.push("the entry names paths of this machine. To share the file, install the package, and run install again.");
  }
  if (client.breaksNpx && isNpx(command)) {
    const better = `npm install -g ${PRODUCT}, then ${PRODUCT} install ${client.id}`;
    notes.push(
      `${client.title} may end npx: the lock of its unfinished installation then delays each client that uses npx. Better: ${better}.`,
    );
  }
  return notes;
}

function notesOnTimeout({ client }: Aim, longestMs: number): string[] {
  if (!mayGiveUp(client, longestMs)) return [];
  return [`calls can take ${String(longestMs)} ms, and ${client.title} may give up earlier: docs/clients.md.`];
}

/** Warns of a missing login, because each session would fail, the first after an installation of hundreds of megabytes. */
async function loginNotes(): Promise<string[]> {
  const { found } = await findLogin(childEnvironment(process.env, { depth: 0 }));
  const problem = `no login and no key of Claude Code were found, and sessions need one, unless you give the entry a key.`;
  return found === undefined ? [`${problem} \`${PRODUCT} doctor\` says where it looked, and what to do.`] : [];
}

function runningAs(scope: Scope): Running {
  const [, script = ""] = process.argv;
  const { env, execPath, platform } = process;
  return { platform, env, execPath, script, cwd: process.cwd(), shared: scope === "project" };
}

/** Throws ConfigError inside a session: its shell runs as the user, but must not change what the user's clients start. */
function refuseNested(verb: Verb): void {
  if (nestingDepth() === 0) return;
  throw new ConfigError(`${verb} cannot run inside a session of claude-agents-mcp. Run it in your own shell.`);
}

async function reportProblems(work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    const isOfSystem = error instanceof Error && "syscall" in error;
    if (!(error instanceof UnusableFile || error instanceof HostProblem) && !isOfSystem) throw error;
    console.error(`claude-agents-mcp: ${error.message}`);
    return 1;
  }
}

function chooseAim(verb: Verb, { client: id, scope: written }: Flags, host?: string): Aim {
  const known = CLIENTS.map((each) => each.id);
  if (id === undefined) throw new ConfigError(`uninstall needs a client: ${known.join(", ")}.`);
  const client = CLIENTS.find((each) => each.id === id);
  if (client === undefined) {
    const meant = clientsMeant(id).map((each) => each.id);
    const advice = meant.length > 0 ? ` Did you mean ${meant.join(" or ")}?` : didYouMean(id, known);
    const others = "docs/clients.md has what others need.";
    throw new ConfigError(`${verb}: unknown client "${id}".${advice} Known are ${known.join(", ")}. ${others}`);
  }
  const scope = scopeOf(client, written);
  const places = createPlaces(process.env, process.cwd());
  return { client, scope, host, places, stateFolder: stateFolder(process.env, process.platform) };
}

function scopeOf(client: Client, written: string): Scope {
  if (written !== "user" && written !== "project") {
    throw new ConfigError(`--scope is "${written}": must be user or project.`);
  }
  if (client.files[written] === undefined) throw new ConfigError(`${client.title} has no --scope ${written}.`);
  return written;
}

function readFlags(verb: Verb, argv: readonly string[]): Flags {
  const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
  const [own, serverArgs] = [argv.slice(0, end), argv.slice(end + 1)];
  const options = verb === "install" ? { ...FLAGS, print: { type: "boolean" } as const } : FLAGS;
  const words = verb === "install" ? "a client, and flags for the server behind --" : "a client";
  if (verb === "install") refuseOfServer(own, options);
  const { positionals, values } = parseOwnFlags(verb, own, { options, words });
  const [client, extra] = positionals;
  if (extra !== undefined) throw new ConfigError(`${verb}: unexpected argument "${extra}". It takes one client.`);
  const { host, json = false, scope = "user", yes = false } = values;
  const isPrinted = "print" in values && values.print === true;
  return { client, scope, host, json, print: isPrinted, yes, serverArgs };
}

/** Throws ConfigError for a flag of the server before `--`. */
function refuseOfServer(own: readonly string[], options: object): void {
  const found = own.find((word) => {
    const [, name = ""] = /^--(?:no-)?([^=]+)/.exec(word) ?? [];
    return !(name in options) && SETTINGS.some(({ flag }) => flag === name);
  });
  if (found === undefined) return;
  const client = own.find((word) => CLIENTS.some(({ id }) => id === word)) ?? "CLIENT";
  throw new ConfigError(
    `install: ${found} is for the server: write it behind --, as in \`claude-agents-mcp install ${client} -- ${found}\`.`,
  );
}
