import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findProgram, isExecutable, ownPath, programFolders, findProject } from "../security/find-program.ts";
import { killTree, startTime } from "../claude/supervise/tree.ts";
import { NPM_MISSING, type Fault } from "./install-faults.ts";
import type { Pinned } from "./pinned.ts";

/** Runs npm to install one package with a known integrity value into a folder of its own. */

type Environment = Readonly<Record<string, string | undefined>>;

interface Command {
  readonly program: string;
  readonly words: readonly string[];
}

/**
 * Finds npm in `PATH` outside the project, otherwise beside `node`, because applications often start servers with a short
 * `PATH`.
 */
export async function findNpm(environment: Environment, node = process.execPath): Promise<Command | undefined> {
  const beside = dirname(node);
  if (process.platform === "win32") {
    // Runs `npm-cli.js` with Node, because `npm.cmd` would need a shell.
    const path = environment["PATH"] ?? environment["Path"] ?? "";
    const folders = [...(await programFolders(path, await findProject(process.cwd()))), beside];
    const script = folders
      .map((folder) => join(folder, "node_modules/npm/bin/npm-cli.js"))
      .find((file) => existsSync(file));
    return script === undefined ? undefined : { program: node, words: [script] };
  }
  const own = join(beside, "npm");
  const found = await findProgram("npm", environment, await findProject(process.cwd()));
  const program = found ?? ((await isExecutable(own)) ? own : undefined);
  return program === undefined ? undefined : { program, words: [] };
}

/**
 * Keeps the user's npm configuration, from files and variables in capitals. Removes variables added by an npm that has started
 * this server (`npm_*`), because they include the configuration of the project where that npm ran.
 */
async function npmEnvironment(environment: Environment): Promise<NodeJS.ProcessEnv> {
  const kept = Object.entries(environment).filter(([name]) => !name.startsWith("npm_"));
  return { ...Object.fromEntries(kept), ...(await ownPath(environment)) };
}

/** Restricts npm to the given folder and its manifest. Retry delays are short because the user waits. */
const NPM_ARGUMENTS = [
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

/** Time limit of npm, ms. Enough for 250 MB at 70 kB/s. */
export const NPM_MS = 3_600_000;

/** Files beside the package: the output of npm, and its process. */
const OUTPUT = "npm.log";
const PROCESS = "npm.json";

/** Resolves to the fault, `undefined` on success. npm continues if this process dies; the next server uses the result. */
export async function runNpm(pinned: Pinned, folder: string, environment: Environment): Promise<Fault | undefined> {
  const npm = await findNpm(environment);
  if (!npm) return NPM_MISSING;
  await writeFile(join(folder, "package.json"), JSON.stringify(manifestOf(pinned)));
  await writeFile(join(folder, "package-lock.json"), JSON.stringify(lockOf(pinned)));
  const env = await npmEnvironment(environment);
  const output = openSync(join(folder, OUTPUT), "w", 0o600);
  try {
    const child = spawn(npm.program, [...npm.words, ...NPM_ARGUMENTS, `--prefix=${folder}`], {
      cwd: folder,
      env,
      stdio: ["ignore", output, output],
      detached: true,
      windowsHide: true,
    });
    const ended = waitForEnd(child);
    if (child.pid !== undefined) await noteProcess(folder, child.pid);
    const fault = await ended;
    return fault && ((await readNpmError(folder)) ?? fault);
  } finally {
    closeSync(output);
  }
}

/** Resolves to the fault, `undefined` on success. Kills npm with all its children after `NPM_MS`. */
async function waitForEnd(child: ChildProcess): Promise<Fault | undefined> {
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

async function noteProcess(folder: string, pid: number): Promise<void> {
  await writeFile(join(folder, PROCESS), JSON.stringify({ pid, startedAt: (await startTime(pid)) ?? "" }));
}

/** True while the npm that installs into `folder` is running. */
export async function isNpmRunning(folder: string): Promise<boolean> {
  try {
    const parse: (text: string) => { pid: number; startedAt: string } = JSON.parse;
    const { pid, startedAt } = parse(await readFile(join(folder, PROCESS), "utf8"));
    return (await startTime(pid)) === startedAt;
  } catch {
    return false;
  }
}

/** True if npm has finished in `folder`: npm writes `.package-lock.json` last. */
export function isComplete(folder: string, pinned: Pinned): boolean {
  const written = join(folder, "node_modules", ".package-lock.json");
  return existsSync(written) && existsSync(join(folder, "node_modules", pinned.name, pinned.entry));
}

/** Reads the error from npm's output: its code, and the first line with a description. */
async function readNpmError(folder: string): Promise<Fault | undefined> {
  const output = await readFile(join(folder, OUTPUT), "utf8").catch(() => "");
  const lines = output.split("\n").flatMap((line) => /^npm (?:error|ERR!) (.+)$/.exec(line)?.[1] ?? []);
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

/** Leaves out dependencies of the Agent SDK: the SDK imports none of its peers, and each binary is installed separately. */
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
