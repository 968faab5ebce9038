import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findProgram, isExecutable, ownPath, programFolders, projectOf } from "../security/programs.ts";
import { killTree, startTime } from "../claude/supervise/tree.ts";
import { NPM_MISSING, type Fault } from "./faults.ts";
import type { Pinned } from "./pinned.ts";

/** npm installs one package, of which the integrity is known, into a folder of its own. */

type Environment = Readonly<Record<string, string | undefined>>;

interface Command {
  readonly program: string;
  readonly words: readonly string[];
}

/** npm of PATH outside the project, else the one beside this Node: applications often start servers with a short PATH. */
export async function findNpm(environment: Environment, node = process.execPath): Promise<Command | undefined> {
  const beside = dirname(node);
  if (process.platform === "win32") {
    // npm.cmd would need a shell.
    const path = environment["PATH"] ?? environment["Path"] ?? "";
    const folders = [...(await programFolders(path, await projectOf(process.cwd()))), beside];
    const script = folders
      .map((folder) => join(folder, "node_modules/npm/bin/npm-cli.js"))
      .find((file) => existsSync(file));
    return script === undefined ? undefined : { program: node, words: [script] };
  }
  const own = join(beside, "npm");
  const found = await findProgram("npm", environment, await projectOf(process.cwd()));
  const program = found ?? ((await isExecutable(own)) ? own : undefined);
  return program === undefined ? undefined : { program, words: [] };
}

/**
 * The user's configuration of npm, from their files and variables in capitals. What an npm that started this server has added
 * (`npm_*`) is left out: that is also the configuration of the project in which it ran.
 */
async function npmEnvironment(environment: Environment): Promise<NodeJS.ProcessEnv> {
  const kept = Object.entries(environment).filter(([name]) => !name.startsWith("npm_"));
  return { ...Object.fromEntries(kept), ...(await ownPath(environment)) };
}

/** The folder and what is in it are all that npm is to install. Retries follow soon: the user waits. */
const WORDS = [
  "ci",
  "--ignore-scripts",
  "--global=false",
  "--dry-run=false",
  "--package-lock=true",
  "--workspaces=false",
  "--no-audit",
  "--no-fund",
  "--no-progress",
  "--no-update-notifier",
  "--loglevel=error",
  "--color=false",
  "--fetch-retry-mintimeout=1000",
  "--fetch-retry-maxtimeout=5000",
];

/** Time limit of npm, ms. 250 MB take this long at 70 kB/s. */
export const NPM_MS = 3_600_000;

/** Beside the package: what npm has said, and which process it is. */
const OUTPUT = "npm.log";
const PROCESS = "npm.json";

/** Resolves to what went wrong. npm goes on where this process dies: the next server takes what it has installed. */
export async function runNpm(pinned: Pinned, folder: string, environment: Environment): Promise<Fault | undefined> {
  const npm = await findNpm(environment);
  if (!npm) return NPM_MISSING;
  await writeFile(join(folder, "package.json"), JSON.stringify(manifestOf(pinned)));
  await writeFile(join(folder, "package-lock.json"), JSON.stringify(lockOf(pinned)));
  const env = await npmEnvironment(environment);
  const output = openSync(join(folder, OUTPUT), "w", 0o600);
  try {
    const child = spawn(npm.program, [...npm.words, ...WORDS, `--prefix=${folder}`], {
      cwd: folder,
      env,
      stdio: ["ignore", output, output],
      detached: true,
      windowsHide: true,
    });
    const ended = endOf(child);
    if (child.pid !== undefined) await note(folder, child.pid);
    const fault = await ended;
    return fault && ((await saidIn(folder)) ?? fault);
  } finally {
    closeSync(output);
  }
}

/** Resolves to what went wrong. A npm that takes too long is ended with what it has started. */
async function endOf(child: ChildProcess): Promise<Fault | undefined> {
  return new Promise((resolve) => {
    const end = (text?: string) => {
      clearTimeout(timer);
      resolve(text === undefined ? undefined : { code: "EUNKNOWN", text });
    };
    const timer = setTimeout(() => {
      if (child.pid !== undefined) void killTree(child.pid).catch(() => undefined);
      end(`npm has not ended within ${String(NPM_MS / 60_000)} minutes, and was stopped`);
    }, NPM_MS).unref();
    child.once("error", ({ message }) => end(`npm cannot be started: ${message}`));
    child.once("exit", (code, signal) => {
      if (code === 0) return end();
      end(signal === null ? `npm ended with exit code ${String(code)}` : `npm was ended by ${signal}`);
    });
  });
}

async function note(folder: string, pid: number): Promise<void> {
  await writeFile(join(folder, PROCESS), JSON.stringify({ pid, startedAt: (await startTime(pid)) ?? "" }));
}

/** Whether the npm that installs into the folder still runs. */
export async function npmRuns(folder: string): Promise<boolean> {
  try {
    const parse: (text: string) => { pid: number; startedAt: string } = JSON.parse;
    const { pid, startedAt } = parse(await readFile(join(folder, PROCESS), "utf8"));
    return (await startTime(pid)) === startedAt;
  } catch {
    return false;
  }
}

/** Whether npm has come to its end there: it writes this file last. */
export function isComplete(folder: string, pinned: Pinned): boolean {
  const written = join(folder, "node_modules", ".package-lock.json");
  return existsSync(written) && existsSync(join(folder, "node_modules", pinned.name, pinned.entry));
}

/** npm's own words: its code, and the first line that says something. */
async function saidIn(folder: string): Promise<Fault | undefined> {
  const said = await readFile(join(folder, OUTPUT), "utf8").catch(() => "");
  const lines = said.split("\n").flatMap((line) => /^npm (?:error|ERR!) (.+)$/.exec(line)?.[1] ?? []);
  const code = lines.map((line) => /^code (\S+)$/.exec(line)?.[1]).find((found) => found !== undefined);
  const text = lines.find((line) => !/^(?:code|errno|syscall|path|network|A complete log)\b/.test(line));
  if (code === undefined && text === undefined) return undefined;
  return { code: code ?? "EUNKNOWN", text: (text ?? code ?? "").slice(0, 300) };
}

function manifestOf(pinned: Pinned): object {
  return {
    name: "installed-by-claude-agents-mcp",
    version: "1.0.0",
    private: true,
    dependencies: versionsOf([pinned]),
  };
}

/** Of the Agent SDK without dependencies: it imports none of its peers, and each binary is installed by itself. */
function lockOf(pinned: Pinned): object {
  const { dependencies = [] } = pinned;
  const packages = [pinned, ...dependencies].map(({ integrity, name, version }) => {
    const needs = name === pinned.name && dependencies.length > 0 ? { dependencies: versionsOf(dependencies) } : {};
    return [`node_modules/${name}`, { version, integrity, ...needs }] as const;
  });
  return {
    ...manifestOf(pinned),
    lockfileVersion: 3,
    requires: true,
    packages: { "": manifestOf(pinned), ...Object.fromEntries(packages) },
  };
}

function versionsOf(packages: readonly Pick<Pinned, "name" | "version">[]): Record<string, string> {
  return Object.fromEntries(packages.map(({ name, version }) => [name, version]));
}
