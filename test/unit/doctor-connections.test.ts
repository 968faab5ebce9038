import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { dirname, join } from "node:path";

import { describe, expect, it } from "vitest";

import { isRunning, startTime } from "../../src/claude/supervise/tree.ts";
import { RunningFile } from "../../src/daemon/running-file.ts";
import { createPrivateFolder, socketFolders } from "../../src/daemon/socket-folders.ts";
import { Listener } from "../../src/daemon/listener.ts";
import { examine } from "../../src/doctor/checks.ts";
import { planInstall, planUninstall, type Aim } from "../../src/install/change.ts";
import { CLIENTS, type Scope } from "../../src/install/clients.ts";
import { createPlaces } from "../../src/install/places.ts";
import { useMachine } from "../kit/install/doctor-machine.ts";

/** Findings of `doctor` about clients, daemons, the store and disk space. Other findings: doctor.test.ts. */

const machine = useMachine();
const { at } = machine;

async function textOf(id: string, seen = machine.toMachine()): Promise<string> {
  const [first] = (await examine(seen, () => undefined)).filter((each) => each.id === id);
  return first?.text ?? "";
}

describe("entries of clients", () => {
  function aimAt(id: string, scope: Scope = "user"): Aim & { file: string } {
    const client = CLIENTS.find((each) => each.id === id)!;
    const places = createPlaces(machine.environment, at("work"));
    return { client, scope, places, stateFolder: machine.stateFolder, file: client.files[scope]!(places) };
  }

  async function write(aim: Aim, command: string, ...args: string[]): Promise<void> {
    await (await planInstall(aim, aim.client.entry({ command, args }))).perform();
  }

  it("no fault is found if no client has an entry", async () => {
    expect(await textOf("clients")).toContain("No MCP client has an entry");
  });

  it.each(["claude-code", "codex", "opencode", "zed"])(
    "an entry of %s that starts this installation is named",
    async (id) => {
      const { title } = CLIENTS.find((client) => client.id === id)!;
      await write(aimAt(id), process.execPath, machine.script, "--max-wait-ms", "5000");
      expect(await machine.faults()).toEqual([]);
      expect(await textOf("clients")).toContain(`${title}: this installation`);
    },
  );

  it("an entry by a link, in a linked file, with variables, through npx or over HTTP is not a fault", async () => {
    symlinkSync(machine.script, at("bin", "claude-agents-mcp"));
    const kept = aimAt("cursor", "project");
    await write(kept, "claude-agents-mcp");
    renameSync(kept.file, at("kept.json"));
    chmodSync(at("kept.json"), 0o444);
    symlinkSync(at("kept.json"), kept.file);
    await write(aimAt("zed"), "node", "${HOME}/clone/dist/cli/main.js");
    await write(aimAt("gemini"), "npx", "-y", "claude-agents-mcp@0.1.0");
    const { file } = aimAt("windsurf");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(
      file,
      JSON.stringify({ mcpServers: { "claude-agents-mcp": { serverUrl: "http://127.0.0.1:7465/mcp" } } }),
    );
    expect(await machine.faults()).toEqual([]);
    const text = await textOf("clients");
    expect(text).toContain("Cursor (project): this installation");
    expect(text).toContain("Gemini CLI: the package claude-agents-mcp@0.1.0 through npx");
    expect(text).toContain("Windsurf: a server over HTTP");
    expect(text).toContain("Zed: a command with variables");
  });

  it.each([
    ["a missing Node", () => ({ gone: at("node-18", "bin", "node"), words: [machine.script] })],
    ["a missing script", () => ({ words: [process.execPath], gone: at("old", "main.js") })],
    ["a program that is not on PATH", () => ({ gone: "claude-agents-mcp", words: [] })],
  ])("an entry with %s is an error, and a new entry repairs it", async (_, entry) => {
    const [command = "", ...args] = Object.values(entry()).flat();
    const { gone } = entry();
    const aim = aimAt("codex", "project");
    await write(aim, command, ...args, "--sandbox", "required");
    const found = await machine.onlyFault();
    expect(found).toMatchObject({
      id: "clients",
      level: "error",
      fix: "claude-agents-mcp install codex --scope project -- --sandbox required",
    });
    expect(found.text).toContain(`its entry in ${aim.file} names ${gone}, which does not exist`);
    // Repairs the entry like `fix`, whose command needs the built program.
    await write(aim, process.execPath, machine.script);
    expect(await machine.faults()).toEqual([]);
  });

  it("an entry that starts another installation is a warning", async () => {
    const other = at("other.js");
    writeFileSync(other, "");
    const aim = aimAt("claude-desktop");
    await write(aim, process.execPath, "--no-warnings", other);
    const found = await machine.onlyFault();
    expect(found).toMatchObject({ id: "clients", level: "warning", fix: "claude-agents-mcp install claude-desktop" });
    expect(found.text).toBe(`Claude Desktop starts another installation, ${other}, by its entry in ${aim.file}.`);
    await (await planUninstall(aim)).perform();
    expect(await machine.faults()).toEqual([]);
  });

  it("an entry in a file of invalid JSON is a warning without the content of the file", async () => {
    const { file } = aimAt("vscode");
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '{ "servers": { "key": "sk-secret" ');
    const found = await machine.onlyFault();
    expect(found).toMatchObject({ id: "clients", level: "warning", fix: "claude-agents-mcp install vscode --print" });
    expect(found.text).toContain(`${file} is not valid JSON`);
    expect(found.text).not.toContain("secret");
    rmSync(file);
    expect(await machine.faults()).toEqual([]);
  });
});

describe("daemons", () => {
  /** Starts a daemon in this process. Returns the function that ends the daemon. */
  async function daemon(name: string, startedAt = name, userFile?: string): Promise<() => Promise<void>> {
    const about = { startedAt, userFile, version: "1.2.3", nodeVersion: "", nodeId: "", state: "ready" as const };
    const listener = new Listener({
      folders: await socketFolders(machine.stateFolder),
      name,
      mayDisplace: false,
      version: "1.2.3",
      maxConnections: 9,
      accept: async () => Promise.resolve(() => undefined),
      status: async () => Promise.resolve({ ...about, pid: process.pid, sessions: 2, processes: 1, turns: [] }),
      onStop: () => undefined,
      onCount: () => undefined,
      log: { debug: () => undefined, info: () => undefined, warn: () => undefined },
    });
    await listener.listen();
    return async () => {
      await listener.refuseNew();
      await listener.end();
    };
  }

  it("running daemons are listed with version, pid, clients and sessions", async () => {
    expect(await textOf("daemons")).toBe("No daemon runs.");
    const ends = [await daemon("one")];
    const one = `one (version 1.2.3, pid ${String(process.pid)}, 0 clients, 2 sessions at work)`;
    expect(await textOf("daemons")).toBe(`1 daemon running: ${one}.`);
    ends.push(await daemon("two"));
    const text = await textOf("daemons");
    expect(text).toContain(`2 daemons running: ${one}; two (`);
    expect(await machine.faults()).toEqual([]);
    for (const end of ends) await end();
  });

  it("a daemon started before a change of the user's file is a warning; `settings` names the keys of the file", async () => {
    machine.environment["XDG_CONFIG_HOME"] = at("config");
    const file = at("config", "claude-agents-mcp", "config.json");
    mkdirSync(dirname(file), { recursive: true });
    expect(await textOf("settings")).toBe(`The settings can be used. The user's file, ${file}, gives none.`);
    writeFileSync(file, JSON.stringify({ spares: 0, bounds: { turnMaxMs: 5000, allowBypass: false } }));
    expect(await textOf("settings")).toContain(`${file}, gives spares, bounds of turnMaxMs, allowBypass.`);
    const ends = [await daemon("late", "2100-01-01T00:00:00.000Z")];
    expect(await machine.faults()).toEqual([]);
    ends.push(await daemon("early", "2026-01-01T00:00:00.000Z"));
    const found = await machine.onlyFault();
    expect(found).toMatchObject({ id: "daemons", level: "warning", fix: "claude-agents-mcp daemon stop early" });
    expect(found.text).toContain(`${file} was changed after the start of the daemon early`);
    for (const end of ends) await end();
  });

  it("a daemon that reads another user's file is a warning", async () => {
    const own = at(".config", "claude-agents-mcp", "config.json");
    const ends = [await daemon("same", "2100-01-01T00:00:00.000Z", own)];
    expect(await machine.faults()).toEqual([]);
    ends.push(await daemon("other", "2100-01-01T00:00:00.000Z", "/elsewhere/config.json"));
    const found = await machine.onlyFault();
    expect(found).toMatchObject({ id: "daemons", level: "warning", fix: "claude-agents-mcp daemon stop other" });
    expect(found.text).toContain(`The daemon other reads the user's file /elsewhere/config.json, and not ${own}`);
    for (const end of ends) await end();
  });

  it("a daemon that does not answer is a warning, with its pid if recorded", async () => {
    const folder = join(machine.stateFolder, "run");
    await createPrivateFolder(folder);
    const mute = createServer((socket) => socket.destroy()).listen(join(folder, "mute.sock"));
    await once(mute, "listening");
    const found = await machine.onlyFault();
    expect(found).toMatchObject({ id: "daemons", level: "warning", fix: "claude-agents-mcp daemon logs mute" });
    expect(found.text).toContain("The daemon mute does not answer, and its pid is not recorded");
    const record = new RunningFile(machine.stateFolder, "mute", {
      pid: process.pid,
      startedAt: (await startTime(process.pid)) ?? "",
    });
    await record.begin(isRunning);
    const named = await machine.onlyFault();
    const pid = String(process.pid);
    expect(named).toMatchObject({ level: "warning", fix: "claude-agents-mcp daemon stop mute" });
    expect(named.text).toContain(`The daemon mute (pid ${pid}) does not answer`);
    expect(named.text).toContain(`kill -9 ${pid}`);
    expect(await textOf("daemons")).toBe("No daemon runs that can be asked.");
    await record.end();
    mute.close();
    await once(mute, "close");
    expect(await machine.faults()).toEqual([]);
  });
});

it("`doctor` says that sessions in memory end with their server, and what it finds in a database", async () => {
  expect(await textOf("store", machine.toMachine({}, ["--store", "memory:"]))).toContain("in memory");
  const facts = { name: "postgres://h:5432/d", server: "15.1", used: 3, most: 100 };
  const store = { version: 1, readableBy: 1, sessions: 12, nodes: 2 };
  const found = async (over: object) => {
    const readDatabase = async () => Promise.resolve({ ...facts, store, ...over });
    return textOf("store", machine.toMachine({ store: undefined, readDatabase }));
  };
  expect(await found({})).toBe(
    "postgres://h:5432/d: 12 sessions, format 1, 2 running servers, PostgreSQL 15.1, 3 of 100 connections in use.",
  );
  expect(await found({ store: undefined })).toContain("the first session creates the tables");
  expect(await found({ used: 96 })).toContain("Raise max_connections.");
});

it("`doctor` reports the space of store, logs and cache, including files beside the store", async () => {
  const write = (bytes: number, ...names: string[]) => {
    mkdirSync(dirname(at(...names)), { recursive: true });
    writeFileSync(at(...names), Buffer.alloc(bytes));
  };
  write(1_000_000, "kept", "store.db");
  write(300_000, "kept", "store.db-wal");
  write(200_000, "state", "claude-agents-mcp", "logs", "daemon-a.log");
  write(100_000, "audit.jsonl");
  write(2_000_000, "cache", "claude-agents-mcp", "compiled", "v20", "a");
  const seen = machine.toMachine({}, ["--store", at("kept", "store.db"), "--audit-log", at("audit.jsonl")]);
  expect(await textOf("disk", seen)).toContain("Store 1.3 MB, logs 0.3 MB, cache 2.0 MB ");
});

it("`doctor` names each settings file ignored by Claude Code once, and warns if Claude Code does not answer", async () => {
  const file = at(".claude", "settings.json");
  machine.settingsErrors([
    { file, path: "hooks.Stop", message: "Expected array, but received string" },
    { file, path: "hooks", message: "Expected object" },
  ]);
  const found = await machine.onlyFault();
  expect(found).toMatchObject({ id: "claude-settings", level: "error" });
  expect(found.text).toContain(`ignores all of ${file}, its deny rules and hooks included: hooks.Stop: Expected array`);
  expect(readFileSync(at("asked"), "utf8")).toContain('"subtype":"get_settings"');
  writeFileSync(at("settings-answer"), "");
  expect(await machine.onlyFault()).toMatchObject({ id: "claude-settings", level: "warning" });
});
