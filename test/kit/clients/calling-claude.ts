import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { vi } from "vitest";

import { bundledClaudes } from "../../../src/claude/claude-files.ts";
import type { RequestRecord } from "../../../src/demo/model/records.ts";
import { scriptTag } from "../../../src/demo/model/script.ts";
import { startScriptedModel, type ScriptedModel } from "../../../src/demo/model/server.ts";
import { childrenOf } from "../process-tree.ts";
import type { World } from "../world.ts";

/** The real Claude Code as a client of our server over stdio: its model, scripted too, calls our tools. */

/** Place and model of a Claude Code. A second Claude Code there can continue the conversation of the first. */
export interface CallerHome {
  readonly folder: string;
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly words: readonly string[];
  readonly model: ScriptedModel;
  /** Requests of the conversation, in order, without those about titles and the like. */
  readonly requests: () => readonly RequestRecord[];
  /** Resolves with the request that the script answers with its entry `index`, from 0. */
  asks(index: number): Promise<RequestRecord>;
  /** Resolves once files hold a task and the model's `text` after the task: if killed before, Claude Code can lose both. */
  keeps(text: string): Promise<void>;
  close(): Promise<void>;
}

interface HomeOptions {
  /** Flags of our server. */
  readonly args?: readonly string[];
  readonly env?: Record<string, string>;
}

const SERVER = "agents";
/** Limit of `shows` and `keeps`, ms. Below the limits of tests, so that a failure names the wait and not only the test. */
const WAIT = { timeout: 45_000, interval: 50 };
const MAIN = join(import.meta.dirname, "../../../dist/cli/main.js");

/** Creates a home in which nothing is asked before the first prompt. */
export async function callerHome(world: World, { args = [], env = {} }: HomeOptions = {}): Promise<CallerHome> {
  const model = await startScriptedModel();
  const folder = world.folder();
  const [cwd, config] = [join(folder, "project"), join(folder, "config")];
  for (const each of [cwd, config]) mkdirSync(each);
  const known = {
    hasCompletedOnboarding: true,
    theme: "dark",
    customApiKeyResponses: { approved: ["scripted-model"], rejected: [] },
    projects: { [cwd]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
  };
  writeFileSync(join(config, ".claude.json"), JSON.stringify(known));
  const server = { type: "stdio", command: process.execPath, args: [MAIN, "serve", ...args], env: world.environment };
  const servers = JSON.stringify({ mcpServers: { [SERVER]: server } });
  return {
    folder,
    cwd,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: folder,
      TERM: "xterm-256color",
      LANG: "C.UTF-8",
      ...model.environment(config),
      ENABLE_TOOL_SEARCH: "false",
      ...env,
    },
    words: ["--mcp-config", servers, "--strict-mcp-config", "--allowedTools", `mcp__${SERVER}`],
    model,
    requests: () => model.requests.filter(({ served }) => "entry" in served || served.none === "past the end"),
    asks: async (index) => model.waitForRequest(({ served }) => "entry" in served && served.entry === index),
    keeps: async (text) => {
      const kept = `"type":"text","text":${JSON.stringify(text)}`;
      const isKept = () => {
        const files = filesIn(join(config, "projects"));
        const transcripts = files.filter((file) => file.endsWith(".jsonl"));
        return (
          files.some((file) => file.includes("mcp-tasks") && file.endsWith(".meta.json")) &&
          transcripts.some((file) => readFileSync(file, "utf8").includes(kept))
        );
      };
      await vi.waitUntil(isKept, WAIT);
    },
    close: async () => model.close(),
  };
}

function filesIn(folder: string): string[] {
  return existsSync(folder)
    ? readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name))
    : [];
}

/** Prompt after which the model makes `calls` in one message, and needs two more answers at most. */
export function promptWith(...calls: readonly { readonly tool: string; readonly input: object }[]): string {
  const tools = calls.map(({ input, tool }) => ({ name: `mcp__${SERVER}__${tool}`, input: { ...input } }));
  return scriptTag([{ tools }, { text: "Begun." }, { text: "Told." }, { text: "Told again." }]);
}

export interface RunningClaude {
  /** All output so far, with the codes of a terminal. */
  output(): string;
  type(text: string): void;
  /** Resolves when the output matches. A terminal may replace spaces by moves, so spaces do not count. */
  shows(pattern: RegExp): Promise<void>;
  kill(): Promise<void>;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
}

const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;

/** Starts the terminal of Claude Code. `more` are its further words, such as a prompt or `--continue`. */
export function startTerminal(home: CallerHome, more: readonly string[], claude = ownClaude()): RunningClaude {
  const command = [claude, ...home.words, ...more].map(quoted).join(" ");
  const words = ["-qefc", `stty cols 160 rows 50; exec ${command}`, "/dev/null"];
  const terminal = spawn("/usr/bin/script", words, { cwd: home.cwd, env: home.env, stdio: "pipe" });
  return running(terminal, () => childrenOf(terminal.pid ?? 0));
}

/** Starts `claude -p`. */
export function startPrinting(home: CallerHome, more: readonly string[], claude = ownClaude()): RunningClaude {
  const child = spawn(claude, ["-p", ...home.words, ...more], { cwd: home.cwd, env: home.env, stdio: "pipe" });
  if (!more.includes("stream-json")) child.stdin.end();
  return running(child, () => [child.pid ?? 0]);
}

/** Claude Code of the Agent SDK. */
export const ownClaude = () => bundledClaudes()[0] ?? "claude";

function running(child: ChildProcess, pids: () => readonly number[]): RunningClaude {
  let output = "";
  const watchers = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      for (const look of watchers) look();
    });
  }
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return {
    output: () => output,
    type: (text) => void child.stdin?.write(text),
    shows: async (pattern) =>
      new Promise<void>((resolve, reject) => {
        const end = (fault?: string) => {
          watchers.delete(look);
          clearTimeout(timer);
          if (fault === undefined) resolve();
          else reject(new Error(`Claude Code ${fault}: ${plain(output)}`));
        };
        const look = () => {
          if (pattern.test(plain(output))) end();
        };
        const timer = setTimeout(end, WAIT.timeout, `does not show ${String(pattern)}`);
        watchers.add(look);
        void exited.then(() => end("has ended"));
        look();
      }),
    async kill() {
      for (const pid of pids()) process.kill(pid, "SIGKILL");
      await exited;
    },
    exited,
  };
}

/** Matches a code of a terminal: a colour, a move, a title. */
// oxlint-disable-next-line no-control-regex -- codes begin with a control character
const CODE = /\u001B(?:\[[0-9;?<>=]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)|[@-Z\\-_])/g;

function plain(text: string): string {
  return text.replaceAll(CODE, "").replaceAll(/\s+/g, "");
}
