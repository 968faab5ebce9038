import { stateFolder } from "../config/state-folder.ts";
import { CLIENTS, type Client, type Scope } from "../install/clients.ts";
import type { Aim } from "../install/change.ts";
import { hostEntries, readEntryState, type EntryState } from "../install/entries.ts";
import { invocationOf, type Running } from "../install/invocation.ts";
import { createPlaces, type Places } from "../install/places.ts";
import { findProgram } from "../security/find-program.ts";

/** `install` without a client: lists all clients, with presence on this machine and state of their entries. */

interface Row {
  readonly client: string;
  readonly title: string;
  /** True if the user's file or the program exists. */
  readonly found: boolean;
  readonly user: EntryState | null;
  readonly project: EntryState | null;
  readonly hosts: readonly Host[];
}

/** Entry of a server on another machine. */
interface Host {
  readonly name: string;
  readonly scope: Scope;
  /** Destination of `ssh`. */
  readonly target: string;
}

export async function listClients(json: boolean, runningAs: (scope: Scope) => Running): Promise<number> {
  const places = createPlaces(process.env, process.cwd());
  const folder = stateFolder(process.env, process.platform);
  const rows: Row[] = [];
  for (const client of CLIENTS) {
    const aimAt = (scope: Scope): Aim => ({ client, scope, places, stateFolder: folder });
    const cell = async (scope: Scope) => readEntryState(aimAt(scope), await invocationOf(runningAs(scope), []));
    const [user, project] = [await cell("user"), await cell("project")];
    const hosts = [...(await hostsOf(aimAt("user"), runningAs)), ...(await hostsOf(aimAt("project"), runningAs))];
    rows.push({ client: client.id, title: client.title, found: await isFound(client, places), user, project, hosts });
  }
  process.stdout.write(json ? `${JSON.stringify({ clients: rows })}\n` : page(rows));
  return 0;
}

async function hostsOf(aim: Aim, runningAs: (scope: Scope) => Running): Promise<Host[]> {
  const found = await hostEntries(aim, runningAs(aim.scope));
  return found.flatMap(({ aim: { host: name, scope }, target }) =>
    name !== undefined && target.kind === "ssh" ? [{ name, scope, target: target.call.target }] : [],
  );
}

async function isFound({ files, program }: Client, places: Places): Promise<boolean> {
  const names = places.platform === "win32" ? [".exe", ".cmd"].map((ending) => `${program ?? ""}${ending}`) : [program];
  const found = program === undefined ? [] : names.map(async (name) => findProgram(name ?? "", places.env));
  return (await Promise.all(found)).some((file) => file !== undefined) || places.exists(files.user?.(places) ?? "");
}

const HEAD = ["Client", "Found", "User", "Project"];

function page(rows: readonly Row[]): string {
  const cells = rows.map(({ client, found, project, user }) => [
    client,
    found ? "yes" : "no",
    user?.state ?? "-",
    project?.state ?? "-",
  ]);
  const widths = HEAD.map((_, column) => Math.max(...[HEAD, ...cells].map((row) => row[column]?.length ?? 0)));
  const lines = [HEAD, ...cells].map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  "));
  const problems = rows.flatMap(({ project, user }) => [user?.problem ?? [], project?.problem ?? []].flat());
  const hosts = rows.flatMap((row) => row.hosts.map((host) => hostLine(row, host)));
  const advice = [
    "installed: the entry starts this installation. different: it has another command or other flags.",
    "claude-agents-mcp install CLIENT [--scope project] writes it, after it has shown the change and asked.",
  ];
  return `${[...lines.map((line) => line.trimEnd()), "", ...hosts, ...problems, ...advice].join("\n")}\n`;
}

function hostLine({ client }: Row, { name, scope, target }: Host): string {
  return `${client}${scope === "project" ? " (project)" : ""}: ${name}, by ssh on ${target}`;
}
