import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parseOwnFlags } from "./own-flags.ts";
import { ClaudeLocator } from "../claude/locate.ts";
import { Installer } from "../claude/installer.ts";
import { cacheFolder } from "../config/cache-folder.ts";
import { loadConfig } from "../config/load.ts";
import { daemonEnvironment } from "../daemon/daemon-environment.ts";
import { connect, type ServerCommand } from "../demo/client.ts";
import { type ScriptedModel, startScriptedModel } from "../demo/model/server.ts";
import { jsonScreen, textScreen, type Screen } from "../demo/screen.ts";
import { PackageCache } from "../packages/package-cache.ts";
import { play, usd, type Ending } from "../demo/story.ts";
import { withClaudePath } from "../domain/client-environment.ts";
import { AppError } from "../domain/error.ts";
import { CONSTANTS_VARIABLE } from "../domain/names.ts";

interface Flags {
  json: boolean;
  keep: boolean;
  live: boolean;
}

/** Plays a real session from client to Claude Code and back. Resolves to exit code 0 only if all checks passed. */
export async function demo(argv: string[]): Promise<number> {
  const flags = readFlags(argv);
  const problem = await installClaude();
  if (problem !== undefined) {
    console.error(`claude-agents-mcp: ${problem}`);
    return 1;
  }
  const write = (text: string) => void process.stdout.write(text);
  const screen = flags.json ? jsonScreen(write) : textScreen(write, process.stdout.isTTY && process.stdout.hasColors());
  const home = await realpath(await mkdtemp(join(tmpdir(), "claude-agents-mcp-demo-")));
  const { code, signal } = watchEarlyEnd();
  try {
    const ending = await run({ ...flags, home, screen, signal });
    screen.ending({ ...ending }, endingText(ending));
    return ending.ok ? 0 : 1;
  } catch (error) {
    if (signal.aborted) return code();
    console.error(`claude-agents-mcp: the demo failed: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    if (flags.keep) console.error(`Kept: ${home}`);
    else rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}

/**
 * Installs missing packages, with the user's environment: the demo's server has a nearly empty one. Resolves to the error
 * message if there is no Claude Code.
 */
async function installClaude(): Promise<string | undefined> {
  const environment = process.env;
  const { claudePath } = loadConfig({ argv: [], env: environment });
  const log = { warn: () => undefined };
  const location = { environment, cacheFolder: cacheFolder(environment) };
  const packages = new PackageCache(location);
  const claude = new ClaudeLocator({ ...location, log, packages });
  try {
    let reported = -1;
    const wanted = { environment: withClaudePath(environment, claudePath) };
    await new Installer({ claude, packages }).install(wanted, (percent) => {
      if (percent < reported + 10) return;
      reported = percent;
      process.stderr.write(`Preparing Claude Code, ${String(percent)} %\n`);
    });
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

/**
 * Aborts `signal` on SIGINT, SIGTERM and SIGHUP, and once the reader of `stdout` is gone (`| head`). `code` returns the exit
 * code for that case.
 */
function watchEarlyEnd(): { readonly code: () => number; readonly signal: AbortSignal } {
  const early = new AbortController();
  let code = 1;
  process.stdout.on("error", () => early.abort());
  for (const [name, exitCode] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.once(name, () => {
      code = exitCode;
      early.abort();
    });
  }
  return { code: () => code, signal: early.signal };
}

function readFlags(argv: string[]): Flags {
  const off = { type: "boolean", default: false } as const;
  return parseOwnFlags("demo", argv, { options: { live: off, json: off, keep: off } }).values;
}

interface Run extends Flags {
  readonly home: string;
  readonly screen: Screen;
  readonly signal: AbortSignal;
}

/**
 * Plays the demo in `home`. After `signal` aborts, rejects only once the server has ended, so that no process writes to `home`
 * any more.
 */
async function run({ home, live, screen, signal }: Run): Promise<Ending> {
  const startedAt = performance.now();
  const project = await mkdtemp(join(home, "project-"));
  // A git repository, as in practice. Without git the demo runs all the same.
  await promisify(execFile)("git", ["init", "--quiet", project]).catch(() => undefined);
  const model = live ? undefined : await startScriptedModel();
  try {
    const environment = model ? scriptedEnvironment(model, home) : ownEnvironment();
    const client = await connect(serverCommand(environment), signal);
    try {
      screen.title(`claude-agents-mcp ${client.serverVersion}, MCP ${client.protocolVersion}, over stdio`);
      const played = model ? `the scripted model at ${model.url}` : "your own Claude login";
      screen.line({ at: 0, who: "note", text: `Claude Code works in ${project}, with ${played}` });
      return await play({ client, screen, project, model, startedAt });
    } finally {
      await client.close();
    }
  } finally {
    await model?.close();
  }
}

/** Signs Claude Code in to a subscription, and shortens the time from its reset to the going on. */
function scriptedEnvironment(model: ScriptedModel, home: string): Record<string, string> {
  const shortened = { limitMarginMs: LIMIT_MARGIN_MS };
  return {
    ...model.environment(join(home, "config"), { plan: true }),
    [CONSTANTS_VARIABLE]: JSON.stringify(shortened),
  };
}

const LIMIT_MARGIN_MS = 100;

function serverCommand(env: Record<string, string>): ServerCommand {
  const main = fileURLToPath(new URL("./main.js", import.meta.url));
  const args = [main, "serve", "--log-level", "warn", "--store", "memory:"];
  return { command: process.execPath, args, env: { ...daemonEnvironment(process.env), ...env } };
}

function ownEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

function endingText({ costUsd, ok, turns }: Ending): string {
  const verdict = ok ? "All checks passed" : "Some checks FAILED";
  return `${verdict}: ${turns.toString()} turns, ${usd(costUsd)}`;
}
