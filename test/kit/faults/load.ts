import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { getDefaultEnvironment } from "@modelcontextprotocol/client/stdio";
import { vi } from "vitest";

import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Server } from "../servers/stdio-server.ts";
import type { World } from "../world.ts";
import { commandOf, persistently, wholeLog } from "./shims.ts";

/** A daemon with a home of its own, and two clients whose sessions talk, run tools, ask and leave work behind. */

export const PROGRAMS = ["client", "proxy", "daemon", "shim", "reaper", "Claude Code"] as const;
export type Program = (typeof PROGRAMS)[number];

const CLIENT = join(import.meta.dirname, "load-client.mjs");
const MAIN = join(import.meta.dirname, "../../../dist/cli/main.js");
const SETTINGS = { maxLive: 16 };
/** Time limit for the end of each turn after a kill, ms. Waits for another program take at most 10 s. */
const SETTLED_MS = 90_000;

const bash = (command: string, more: object = {}) => ({ name: "Bash", input: { command, ...more } });
const spoken = { text: ["Some", " text", " in", " parts."], chunkDelayMs: 60 };

function startsIn(world: World) {
  const of = (script: object[], cwd = world.folder()) => ({ prompt: scriptTag(script), cwd, allowedTools: ["Bash"] });
  const writing = (cwd: string) => {
    const write = (name: string) => ({ name: "Write", input: { file_path: join(cwd, name), content: name } });
    return of([{ ...spoken, tools: [write("a")] }, { tools: [write("b")] }, { text: "done" }], cwd);
  };
  const behind = bash("sleep 1.5; echo done", { run_in_background: true, description: "behind" });
  return {
    talking: () => of([{ ...spoken, tools: [bash("sleep 0.4")] }, { ...spoken, tools: [bash("sleep 0.4")] }, spoken]),
    asking: () => writing(world.folder()),
    leaving: () => of([{ tools: [behind] }, spoken, { text: "done" }, { text: "done" }]),
  };
}

export class Load {
  readonly home: string;
  readonly #world: World;
  readonly #random: () => number;
  readonly #known = new Set<string>();
  #outside: ChildProcess | undefined;
  #inside: Server | undefined;

  constructor(world: World, random: () => number) {
    this.#world = world;
    this.#random = random;
    this.home = world.folder();
  }

  get #env() {
    return { HOME: this.home };
  }

  async #client(): Promise<Server> {
    return this.#world.shared({ settings: SETTINGS, env: this.#env });
  }

  /**
   * Resolves when both clients are connected; `begun` resolves when all starts are answered, with the number of sessions of the
   * inner client.
   */
  async begin(): Promise<{ readonly begun: Promise<number> }> {
    const { asking, leaving, talking } = startsIn(this.#world);
    this.#inside = await this.#client();
    const client = this.#inside;
    const outside = spawn(process.execPath, [CLIENT, JSON.stringify([talking(), asking(), leaving()]), MAIN, "serve"], {
      env: { ...getDefaultEnvironment(), ...this.#world.environment, ...this.#world.settings(SETTINGS), ...this.#env },
      stdio: ["pipe", "pipe", "ignore"],
    });
    this.#outside = outside;
    let said = "";
    outside.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const over = once(outside, "exit");
    await vi.waitUntil(() => said.includes("connected"), { timeout: 30_000, interval: 10 });
    const inside = [talking(), asking(), leaving()].map(async (start) => this.#start(client, start));
    const begun = vi.waitUntil(() => said.includes("begun"), { timeout: 60_000, interval: 20 });
    const both = Promise.all([Promise.all(inside), Promise.race([begun, over])]);
    return { begun: both.then(([started]) => started.filter(Boolean).length) };
  }

  /**
   * Starts a session and queues a prompt behind its turn. Returns `false` if the daemon or proxy has died; the log shows the
   * outcome.
   */
  async #start(client: Server, start: object): Promise<boolean> {
    const { sessionId } = await client.call("claude_code", { ...start }).catch(() => ({ sessionId: undefined }));
    if (sessionId === undefined) return false;
    const queued = { sessionId, prompt: scriptTag([{ text: "queued" }]), whenBusy: "queue", waitMs: 0 };
    await client.call("claude_code_reply", queued).catch(() => undefined);
    return true;
  }

  /** Sends SIGKILL to a random process of `program`; waits for the process if none runs yet. */
  async kill(program: Program): Promise<void> {
    const found = async () => vi.waitUntil(() => this.#pidsOf(program), { timeout: 30_000, interval: 5 });
    const pids = await found();
    process.kill(pids[Math.floor(this.#random() * pids.length)]!, "SIGKILL");
  }

  /** `undefined` if no process of `program` runs. */
  #pidsOf(program: Program): number[] | undefined {
    const pids = this.#allOf(program);
    return pids.length > 0 ? pids : undefined;
  }

  #allOf(program: Program): number[] {
    const ours = (pid: number) => this.#isOurs(pid);
    switch (program) {
      case "client":
        return [this.#outside!.pid!];
      case "proxy":
        return [this.#inside!.pid];
      case "daemon":
        return this.#world.daemons().filter(ours);
      case "shim":
        return this.#shims();
      case "reaper": {
        const shims = this.#shims();
        return withCommand("reaper-process.js").filter((pid) => shims.includes(parentOf(pid)));
      }
      case "Claude Code":
        return this.#world
          .processes()
          .filter(({ command, pid }) => command.includes("--output-format stream-json") && ours(pid))
          .map(({ pid }) => pid);
    }
  }

  /** Shims have an empty environment, and run in the state folder. */
  #shims(): number[] {
    return withCommand("shim/shim.js").filter((pid) => folderOf(pid).startsWith(this.home));
  }

  /**
   * Allows all requests until nothing runs in any session; returns the outcome of each turn of this load. Throws if a turn does
   * not end.
   */
  async settle(): Promise<string[]> {
    const client = await this.#client();
    const { sessions } = await persistently(async () =>
      client.call("claude_code_session", { action: "list", limit: 100 }),
    );
    const ids = sessions.map(({ sessionId }) => sessionId).filter((id) => !this.#known.has(id));
    for (const id of ids) this.#known.add(id);
    await Promise.all(ids.map(async (id) => this.#drive(client, id)));
    const outcomes = (await Promise.all(ids.map(async (id) => this.#outcomes(id)))).flat();
    await this.#expectUsable(client, ids[0]);
    for (const sessionId of ids) await client.call("claude_code_session", { action: "cancel", sessionId });
    await Promise.all([client.close(), this.#inside?.close().catch(() => undefined)]);
    this.#outside?.kill("SIGKILL");
    return outcomes;
  }

  /** Returns the number of processes of sessions still running after 10 s. */
  async leftOver(): Promise<number> {
    const left = () =>
      this.#world.processes().filter(({ command, pid }) => !command.includes("serve") && this.#isOurs(pid));
    await vi.waitUntil(() => left().length === 0, { timeout: 10_000, interval: 50 }).catch(() => undefined);
    return left().length;
  }

  #isOurs(pid: number): boolean {
    return textOf(pid, "environ").split("\0").includes(`HOME=${this.home}`);
  }

  async #drive(client: Server, sessionId: string): Promise<void> {
    const end = Date.now() + SETTLED_MS;
    while (Date.now() < end) {
      const { actions, background, status } = await persistently(async () =>
        client.call("claude_code_check", { action: "poll", sessionId, waitMs: 2_000 }),
      );
      if (status !== "running" && actions.length === 0 && background.length === 0) return;
      for (const { requestId } of actions) {
        const answer = { action: "respond_permission", sessionId, requestId, decision: "allow" };
        // The other client may have answered first.
        await client.call("claude_code_check", answer).catch(() => undefined);
      }
      if (status !== "running") await sleep(100);
    }
    throw new Error(`a turn has no outcome after ${String(SETTLED_MS)} ms: ${await this.#told(sessionId)}`);
  }

  async #outcomes(sessionId: string): Promise<string[]> {
    const log = await wholeLog(this.home, sessionId);
    const count = (name: string) => log.filter(({ type }) => type === name).length;
    if (count("turn.started") !== count("turn.ended")) {
      throw new Error(`a turn has no end: ${await this.#told(sessionId)}`);
    }
    return log.flatMap(({ event, type }) => {
      const { data } = JSON.parse(event) as { data: { errorSubtype?: string; outcome: string } };
      return type === "turn.ended" ? [data.errorSubtype ?? data.outcome] : [];
    });
  }

  async #told(sessionId: string): Promise<string> {
    const log = await wholeLog(this.home, sessionId);
    return [sessionId, ...log.map(({ event, type }) => `${type} ${event.slice(0, 300)}`)].join("\n");
  }

  async #expectUsable(client: Server, sessionId: string | undefined): Promise<void> {
    if (sessionId === undefined) return;
    const reply = { sessionId, prompt: scriptTag([{ text: "Back." }]), waitMs: 40_000 };
    const { result, status } = await client.call("claude_code_reply", reply);
    if (status !== "idle" || result?.result !== "Back.") {
      throw new Error(`a reply ended as ${status}, ${JSON.stringify(result)}: ${await this.#told(sessionId)}`);
    }
  }
}

function withCommand(part: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => commandOf(pid).includes(part));
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(textOf(pid, "status"))?.[1] ?? 0);
}

function folderOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${String(pid)}/cwd`);
  } catch {
    return "";
  }
}

function textOf(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${String(pid)}/${file}`, "utf8");
  } catch {
    // The process has ended.
    return "";
  }
}
