import { execFile } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { ClaudeLocator } from "../claude/locate.ts";
import { Preparation } from "../claude/preparation.ts";
import { ConfigError } from "../config/error.ts";
import { cacheFolder } from "../config/cache-folder.ts";
import { loadConfig } from "../config/load.ts";
import { connect, type ServerCommand } from "../demo/client.ts";
import { startScriptedModel } from "../demo/model/server.ts";
import { jsonScreen, textScreen, type Screen } from "../demo/screen.ts";
import { PackageCache } from "../packages/package-cache.ts";
import { play, usd, type Ending } from "../demo/story.ts";
import { AppError } from "../domain/error.ts";

interface Flags {
  json: boolean;
  keep: boolean;
  live: boolean;
}

/** Plays one real session from client to Claude Code and back. Resolves to the exit code: 0 only when all went as told. */
export async function demo(argv: string[]): Promise<number> {
  const flags = readFlags(argv);
  const problem = await prepare();
  if (problem !== undefined) {
    console.error(`claude-agents-mcp: ${problem}`);
    return 1;
  }
  const write = (text: string) => void process.stdout.write(text);
  const screen = flags.json ? jsonScreen(write) : textScreen(write, process.stdout.isTTY && process.stdout.hasColors());
  const home = await realpath(await mkdtemp(join(tmpdir(), "claude-agents-mcp-demo-")));
  const cleanUp = () => {
    if (flags.keep) console.error(`Kept: ${home}`);
    else rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  };
  endEarlyWith(cleanUp);
  try {
    const ending = await run(flags, screen, home);
    screen.ending({ ...ending }, endingText(ending));
    return ending.ok ? 0 : 1;
  } catch (error) {
    console.error(`claude-agents-mcp: the demo failed: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  } finally {
    cleanUp();
  }
}

/**
 * Installs what the server of the demo needs: it has little of this environment. Resolves to what that server would say where
 * there is no Claude Code.
 */
async function prepare(): Promise<string | undefined> {
  const environment = process.env;
  const { claudePath } = loadConfig({ argv: [], env: environment });
  const log = { warn: () => undefined };
  const place = { environment, cacheFolder: cacheFolder(environment) };
  const packages = new PackageCache(place);
  const claude = new ClaudeLocator({ claudePath, ...place, log, packages });
  try {
    let told = -1;
    await new Preparation({ claude, packages }).complete(undefined, (percent) => {
      if (percent < told + 10) return;
      told = percent;
      process.stderr.write(`Preparing Claude Code, ${String(percent)} %\n`);
    });
    return undefined;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}

/** A signal, or a reader that has seen enough (`| head`), ends the demo; the server goes with its stdin. */
function endEarlyWith(cleanUp: () => void): void {
  const end = (code: number) => {
    cleanUp();
    process.exit(code);
  };
  process.stdout.on("error", () => end(1));
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.once(signal, () => end(code));
  }
}

function readFlags(argv: string[]): Flags {
  const off = { type: "boolean", default: false } as const;
  try {
    return parseArgs({ args: argv, options: { json: off, keep: off, live: off } }).values;
  } catch (error) {
    const problem = error instanceof Error ? error.message.split(". ")[0] : String(error);
    throw new ConfigError(`demo: ${problem ?? ""}. It takes --live, --json and --keep.`);
  }
}

async function run(flags: Flags, screen: Screen, home: string): Promise<Ending> {
  const startedAt = performance.now();
  const project = await mkdtemp(join(home, "project-"));
  // A repository is what people work in; without git the demo runs all the same.
  await promisify(execFile)("git", ["init", "--quiet", project]).catch(() => undefined);
  const model = flags.live ? undefined : await startScriptedModel();
  const client = await connect(server(model ? model.environment(join(home, "config")) : ownEnvironment()));
  try {
    screen.title(`claude-agents-mcp ${client.serverVersion}, MCP ${client.protocolVersion}, over stdio`);
    const played = model ? `the scripted model at ${model.url}` : "your own Claude login";
    screen.line({ at: 0, who: "note", text: `Claude Code works in ${project}, with ${played}` });
    return await play({ client, screen, project, live: flags.live, startedAt });
  } finally {
    await client.close();
    await model?.close();
  }
}

function server(env: Record<string, string>): ServerCommand {
  const main = fileURLToPath(new URL("./main.js", import.meta.url));
  const { XDG_CACHE_HOME: cache } = process.env;
  const args = [main, "serve", "--log-level", "warn", "--store", "memory:"];
  return { command: process.execPath, args, env: { ...env, ...(cache !== undefined && { XDG_CACHE_HOME: cache }) } };
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
