import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "../config/error.ts";
import { AppError } from "../domain/error.ts";
import { StoreError } from "../store/errors.ts";
import { counted, FIX_COMMAND, quoted, reinstall, type Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";
import type { StoreReport } from "./store-report.ts";

/** Checks the store: local disk, readable, usable version, undamaged. */

/** Time limit of the integrity check, which reads the whole file, ms. */
export const STORE_MS = 60_000;

const LOCAL = "claude-agents-mcp --store FILE_ON_A_LOCAL_DISK";

const IN_MEMORY = "Sessions are kept in memory, and end with their server (--store memory:).";
/** Number of connections that a server takes. */
const CONNECTIONS = 6;

export async function checkStore(machine: Machine): Promise<Finding[]> {
  const { store } = machine;
  if (machine.readDatabase) return [await databaseFinding(machine.readDatabase)];
  if (store === undefined) return [ok(IN_MEMORY)];
  const network = await machine.networkKindOf(dirname(store));
  if (network !== undefined) {
    const text = `The store ${store} is on a network file system (${network}): servers refuse it. Name a file on a local disk.`;
    return [{ id: "store", level: "error", text, fix: LOCAL }];
  }
  if (!existsSync(store)) return [ok(`There is no store yet; the first session creates ${store}.`)];
  const report = await machine.readStore(store, STORE_MS);
  return [reportFinding(store, report), ...(report.kind === "opened" ? rowFindings(store, report) : [])];
}

async function databaseFinding(read: NonNullable<Machine["readDatabase"]>): Promise<Finding> {
  try {
    const { most, name, server, store, used } = await read();
    const connections = `${String(used)} of ${String(most)} connections in use`;
    const facts = [`PostgreSQL ${server}`, connections].join(", ");
    if (most - used < CONNECTIONS) {
      const text = `The database ${name} has few free connections (${connections}), and each server takes up to ${String(CONNECTIONS)}. Raise max_connections.`;
      return { id: "store", level: "warning", text };
    }
    if (!store) return ok(`There are no sessions in ${name} yet; the first session creates the tables. ${facts}.`);
    const { nodes, sessions, version } = store;
    const counts = [counted(sessions, "session"), `format ${String(version)}`, counted(nodes, "running server")];
    return ok(`${name}: ${[...counts, facts].join(", ")}.`);
  } catch (error) {
    if (!(error instanceof AppError || error instanceof ConfigError)) throw error;
    if (!(error instanceof StoreError)) return { id: "store", level: "error", text: error.message };
    if (error.fault === "driver") return { id: "store", level: "warning", text: error.message, fix: FIX_COMMAND };
    return {
      id: "store",
      level: "error",
      text: error.message,
      ...(error.fault === "newer" && { fix: reinstall() }),
    };
  }
}

/** Reads the store for another check; resolves to `undefined` unless it is a file on a local disk that can be read. */
export async function readOpened({ networkKindOf, readStore, store }: Machine) {
  if (store === undefined || !existsSync(store) || (await networkKindOf(dirname(store))) !== undefined)
    return undefined;
  const report = await readStore(store, STORE_MS);
  return report.kind === "opened" ? report : undefined;
}

/** Reports sessions that servers cannot read completely. */
function rowFindings(store: string, { lossy, unreadable }: Extract<StoreReport, { kind: "opened" }>): Finding[] {
  const findings: Finding[] = [];
  const countOf = (ids: readonly string[]) => (ids.length === 1 ? "1 session" : `${String(ids.length)} sessions`);
  const newer = unreadable.filter(({ isNewer }) => isNewer).map(({ id }) => id);
  const damaged = unreadable.filter(({ isNewer }) => !isNewer);
  if (damaged.length > 0) {
    const ids = damaged.map(({ id }) => id);
    const named = damaged.map(({ id, why }) => `${id} (${why})`).join(", ");
    const advice = `Export what is stored of each (sessions export ID), then delete it.`;
    const fix = `claude-agents-mcp sessions delete ${ids.join(" ")} --store ${quoted(store)}`;
    findings.push({ id: "store", level: "error", text: `${countOf(ids)} cannot be read: ${named}. ${advice}`, fix });
  }
  if (newer.length > 0) {
    const text = `${countOf(newer)} can only be read by a newer claude-agents-mcp: ${newer.join(", ")}.`;
    findings.push({ id: "store", level: "warning", text, fix: reinstall() });
  }
  if (lossy.length > 0) {
    const text = `${countOf(lossy)} with events that cannot be read: ${lossy.join(", ")}. The log reports them as lost.`;
    findings.push({ id: "store", level: "warning", text });
  }
  return findings;
}

function reportFinding(store: string, report: StoreReport): Finding {
  if (report.kind === "unknown") {
    const text = `The store ${store} could not be examined: ${report.reason}.`;
    return { id: "store", level: "error", text, fix: `claude-agents-mcp sessions list --store ${quoted(store)}` };
  }
  if (report.kind === "fault") {
    const fix = FIXES[report.fault]?.(store);
    return { id: "store", level: "error", text: report.message, ...(fix !== undefined && { fix }) };
  }
  const { damage, isChecked, schema, sessions, sqlite } = report;
  if (damage !== undefined) {
    const text = `The store ${store} is damaged (${damage}). Move it away, then a new one is created; or restore a backup.`;
    return { id: "store", level: "error", text, fix: moveAway(store) };
  }
  const checked = isChecked ? "whole" : "not checked for damage: it has no write-ahead log";
  return ok(`${store}: ${counted(sessions, "session")}, format ${String(schema)}, SQLite ${sqlite}, ${checked}.`);
}

const FIXES: Readonly<Record<string, (store: string) => string>> = {
  corrupt: moveAway,
  foreign: () => LOCAL,
  newer: () => reinstall(),
  driver: () => FIX_COMMAND,
  readonly: (store) => `chmod u+rwX ${quoted(dirname(store))} ${quoted(store)}`,
};

/** Moves all files of the store, because the write-ahead log of one store would damage another. */
function moveAway(store: string): string {
  const files = [store, `${store}-wal`, `${store}-shm`, `${store}-journal`].filter((file) => existsSync(file));
  const folder = quoted(`${store}.damaged`);
  const move = process.platform === "win32" ? "move" : "mv";
  return `mkdir ${folder} && ${move} ${files.map(quoted).join(" ")} ${folder}`;
}

function ok(text: string): Finding {
  return { id: "store", level: "ok", text };
}
