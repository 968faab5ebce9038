import { existsSync } from "node:fs";
import { unknownVariables } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { ConfigError } from "../config/error.ts";
import { daemonEnvironment } from "../daemon/daemon-environment.ts";
import { fileOf, type Aim } from "../install/change.ts";
import { CLIENTS, type Scope } from "../install/clients.ts";
import { hostEntries, isVariable, readStartedProgram, type StartedProgram } from "../install/entries.ts";
import { createPlaces } from "../install/places.ts";
import {
  entryConfig,
  knownArgs,
  longestCallMs,
  mendedArgs,
  timeoutEntry,
  type EntrySettings,
} from "../install/server-args.ts";
import { PRODUCT } from "../domain/names.ts";
import { namedDaemon } from "../proxy/own-server.ts";
import { quoted, type Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";
import { hasDaemon } from "./processes.ts";
import { sshFindings } from "./ssh-entry.ts";

/** Checks entries of this server in configurations of MCP clients: the started program and its settings. */

const SCOPES: readonly Scope[] = ["user", "project"];

export interface ClientEntry extends StartedProgram {
  readonly aim: Aim;
  readonly file: string;
}

/** Checks entries of the user, and of the project in the current folder. */
export async function checkClients(machine: Machine): Promise<Finding[]> {
  const entries = await clientEntries(machine);
  const faults = await Promise.all(entries.map(async (entry) => findFaults(entry, machine)));
  const found = faults.flat();
  const isFine = found.every(({ level }) => level === "ok");
  return isFine ? [{ id: "clients", level: "ok", text: summary(entries) }, ...found] : found;
}

export async function clientEntries({ cwd, environment, script, stateFolder }: Machine): Promise<ClientEntry[]> {
  const { execPath, platform } = process;
  const running = { platform, env: environment, execPath, script, cwd, shared: false };
  const places = createPlaces(environment, cwd);
  const aims = CLIENTS.flatMap((client) => SCOPES.map((scope): Aim => ({ client, scope, places, stateFolder })));
  const seen = new Set<string>();
  const entries: ClientEntry[] = [];
  for (const aim of aims) {
    const file = fileOf(aim);
    // Both scopes can name one file in the home folder.
    if (file === undefined || seen.has(file)) continue;
    seen.add(file);
    const started = await readStartedProgram(aim, running);
    if (started) entries.push({ aim, file, ...started });
    entries.push(...(await hostEntries(aim, running)).map((entry) => ({ file, ...entry })));
  }
  return entries;
}

async function findFaults(entry: ClientEntry, machine: Machine): Promise<Finding[]> {
  const { aim, file, target } = entry;
  const { title } = aim.client;
  // Keeps the flags, because sessions are restricted by them.
  const fix = installCommand(aim, flagsOf(entry));
  switch (target.kind) {
    case "missing": {
      const text = `${title} cannot start this server: its entry in ${file} names ${target.path}, which does not exist.`;
      return [{ id: "clients", level: "error", text, fix }];
    }
    case "other": {
      const text = `${title} starts another installation, ${target.path}, by its entry in ${file}.`;
      return [{ id: "clients", level: "warning", text, fix }];
    }
    case "unreadable":
      return [{ id: "clients", level: "warning", text: target.problem, fix: `${installCommand(aim)} --print` }];
    case "this":
      return settingFaults(entry, machine);
    case "npx":
      // Another version may have other settings.
      return [PRODUCT, `${PRODUCT}@latest`].includes(target.spec) ? settingFaults(entry, machine) : [];
    case "ssh":
      return sshFindings({ ...entry, call: target.call }, machine.environment);
    case "http":
    case "variable":
      return [];
  }
}

/** Returns the command to rewrite the entry with arguments `argv` of `serve`. */
function installCommand({ client, scope }: Aim, argv: readonly string[] = []): string {
  const place = scope === "project" ? " --scope project" : "";
  const flags = argv.length === 0 ? "" : ` -- ${argv.map(quoted).join(" ")}`;
  return `claude-agents-mcp install ${client.id}${place}${flags}`;
}

/** Returns flags of `serve`, with or without the word `serve`. */
function flagsOf({ words }: ClientEntry): readonly string[] {
  return words[0] === "serve" ? words.slice(1) : words;
}

async function settingFaults(entry: ClientEntry, machine: Machine): Promise<Finding[]> {
  const { aim, env, file, words } = entry;
  const { title } = aim.client;
  const [command = "serve"] = words;
  if (!command.startsWith("-") && command !== "serve") {
    const text = `${title} cannot use this server: its entry in ${file} runs "claude-agents-mcp ${command}", which serves no MCP client.`;
    return [{ id: "clients", level: "error", text, fix: installCommand(aim) }];
  }
  const own = flagsOf(entry);
  const settings: EntrySettings = {
    argv: knownArgs(own, isVariable),
    env: { ...daemonEnvironment(machine.environment), ...env },
    home: machine.home,
    ...(aim.scope === "project" && { cwd: machine.cwd }),
  };
  const config = configOrProblem(settings);
  if (typeof config === "string") return [refused(entry, settings, config)];
  const unknown = unknownVariables(env).map((problem): Finding => {
    const text = `${title}: ${problem} It is in "env" of its entry in ${file}.`;
    return { id: "clients", level: "warning", text };
  });
  const missing = await missingRequirement(config, machine);
  if (missing !== undefined) {
    const text = `${title} cannot use this server: its entry in ${file} has ${missing}`;
    return [{ id: "clients", level: "error", text }, ...unknown];
  }
  return [...(await daemonFaults(entry, settings, machine)), ...timeoutFaults(entry, own, config), ...unknown];
}

/** Names a setting whose requirement is missing on this machine. */
async function missingRequirement({ claudePath, sandbox }: Config, machine: Machine): Promise<string | undefined> {
  if (claudePath !== undefined && !existsSync(claudePath))
    return `the Claude Code ${claudePath}, which does not exist.`;
  const problem = sandbox === "required" ? await machine.sandboxProblem() : undefined;
  return problem === undefined ? undefined : `sandbox "required", and no sandbox is available. ${problem}`;
}

/** Returns the configuration, or the reason why the server would refuse the settings. */
function configOrProblem(settings: EntrySettings): Config | string {
  try {
    return entryConfig(settings);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}

function refused({ aim, env, file }: ClientEntry, settings: EntrySettings, problem: string): Finding {
  const ofEnv = Object.keys(env).filter((name) => problem.includes(name));
  const where = ofEnv.length === 0 ? "" : ` In "env" of the entry, so edit the file: ${ofEnv.join(", ")}.`;
  const text = `${aim.client.title} cannot use this server: its entry in ${file} has invalid settings. ${problem}${where}`;
  const mended = mendedArgs(settings);
  return { id: "clients", level: "error", text, ...(mended && { fix: installCommand(aim, mended) }) };
}

async function daemonFaults(
  { aim, file }: ClientEntry,
  settings: EntrySettings,
  { stateFolder }: Machine,
): Promise<Finding[]> {
  const name = namedDaemon(settings);
  if (name === undefined || (await hasDaemon(stateFolder, name))) return [];
  const text = `${aim.client.title} uses the daemon ${name} by its entry in ${file}, and no daemon of this name runs. Start it, or leave out --daemon.`;
  return [{ id: "clients", level: "warning", text, fix: `claude-agents-mcp daemon run --daemon ${quoted(name)}` }];
}

function timeoutFaults({ aim, entry, file }: ClientEntry, own: readonly string[], config: Config): Finding[] {
  const longestMs = longestCallMs(config);
  return Object.entries(timeoutEntry(aim.client, longestMs)).flatMap(([key, needed]): Finding[] => {
    if (Number(entry[key] ?? 0) >= Number(needed)) return [];
    const seconds = String(longestMs / 1000);
    const text = `${aim.client.title} gives up calls that take longer than "${key}" of its entry in ${file} allows, and calls of the listed tools may take ${seconds} s.`;
    return [{ id: "clients", level: "warning", text, fix: installCommand(aim, own) }];
  });
}

const WORDS: Readonly<Record<string, string>> = {
  this: "this installation",
  http: "a server over HTTP",
  variable: "a command with variables, which is not followed",
};

function summary(entries: readonly ClientEntry[]): string {
  if (entries.length === 0) {
    return `No MCP client has an entry of this server ("claude-agents-mcp install" lists the clients).`;
  }
  const words = ({ aim: { client, scope }, target }: ClientEntry) => {
    const far = target.kind === "ssh" ? `a server on ${target.call.target} by ssh` : WORDS[target.kind];
    const what = target.kind === "npx" ? `the package ${target.spec} through npx` : far;
    return `${client.title}${scope === "project" ? " (project)" : ""}: ${what ?? ""}`;
  };
  return `MCP clients and what they use. ${entries.map(words).join("; ")}.`;
}
