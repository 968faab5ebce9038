#!/usr/bin/env node
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Command line: finds the command and passes on its arguments. Imports only modules of Node, so that an old Node gets a message
 * before a syntax error, and each command loads only its own modules.
 *
 * Exit codes: 0 done, 1 failure, 2 invalid command line or setting.
 */

const MIN_NODE = { major: 20, minor: 19 };

async function run(argv: string[]): Promise<number | undefined> {
  const [first = ""] = argv;
  const named = first !== "" && !first.startsWith("-");
  const command = named ? first : "serve";
  const rest = named ? argv.slice(1) : argv;
  if (argv.includes("--help") || argv.includes("-h")) return help(named ? command : undefined);
  if (argv.includes("--version") || argv.includes("-V")) return version();
  return perform(command, rest);
}

/** Resolves to the exit code; to `undefined` if the command goes on by itself. */
async function perform(command: string, rest: string[]): Promise<number | undefined> {
  switch (command) {
    case "serve":
      return serveClient(rest);
    case "demo": {
      const { demo } = await import("./demo.ts");
      return demo(rest);
    }
    case "sessions": {
      const { sessions } = await import("./sessions.ts");
      return sessions(rest);
    }
    case "rules": {
      const { rules } = await import("./rules.ts");
      return rules(rest);
    }
    case "console": {
      await keepCompiled();
      const { serveConsole } = await import("./console.ts");
      await serveConsole(rest);
      return undefined;
    }
    case "daemon": {
      await keepCompiled();
      const { daemon } = await import("./daemon.ts");
      return daemon(rest);
    }
    case "nodes": {
      const { nodes } = await import("./nodes.ts");
      return nodes(rest);
    }
    case "install": {
      const { install } = await import("./install.ts");
      return install(rest);
    }
    case "uninstall": {
      const { uninstall } = await import("./install.ts");
      return uninstall(rest);
    }
    case "doctor": {
      const { doctor } = await import("./doctor.ts");
      return doctor(rest);
    }
    case "token": {
      const { token } = await import("./token.ts");
      return token(rest);
    }
    case "help":
      return help(rest[0]);
    case "version":
      return version();
    default: {
      const { unknownCommand } = await import("./help.ts");
      throw unknownCommand(command);
    }
  }
}

/** Serves a client through a daemon, or in this process. */
async function serveClient(argv: string[]): Promise<number | undefined> {
  const { connectToDaemon, reasonForOwnServer } = await import("../proxy/serve-through-daemon.ts");
  if (reasonForOwnServer({ argv, env: process.env, pid: process.pid, platform: process.platform }) !== undefined) {
    const { serve } = await importServer();
    await serve(argv);
    return undefined;
  }
  return connectToDaemon({
    argv,
    main: fileURLToPath(import.meta.url),
    check: async () => (await importServer()).checkSettings(argv),
    serveHere: async (why) => (await importServer()).serveWithoutDaemon(argv, why),
  });
}

/** For servers only. The proxy is so small that the compile cache would cost more than it saves. */
async function importServer() {
  await keepCompiled();
  return import("./serve.ts");
}

interface CompileCache {
  enableCompileCache(folder: string): unknown;
}

const hasCompileCache = (node: object): node is CompileCache => "enableCompileCache" in node;

/**
 * Keeps compiled code for the next start (Node 22.8 and later). The folder must be the user's own, because its code is run
 * unchecked; Node's default is in the temporary folder that all users share. Written at the end of the process.
 */
async function keepCompiled(): Promise<void> {
  const module = await import("node:module");
  if (!hasCompileCache(module)) return;
  const { cacheFolder } = await import("../config/cache-folder.ts");
  module.enableCompileCache(join(cacheFolder(process.env), "compiled"));
}

async function help(command: string | undefined): Promise<number> {
  const { helpText } = await import("./help.ts");
  process.stdout.write(helpText(command));
  return 0;
}

async function version(): Promise<number> {
  const { readPackage } = await import("../config/version.ts");
  process.stdout.write(`${readPackage().version}\n`);
  return 0;
}

/** Writes the error to stderr: a line for errors of the operator, the stack for errors of ours. */
async function report(error: unknown): Promise<number> {
  const { ConfigError } = await import("../config/error.ts");
  if (error instanceof ConfigError) {
    console.error(`claude-agents-mcp: ${await withSources(error.message)}`);
    return 2;
  }
  console.error("claude-agents-mcp:", error);
  return 1;
}

/** Adds sources to a message that names settings only by flag or key. */
async function withSources(message: string): Promise<string> {
  const [{ bySource }, { readGiven }, { readUserFile }] = await Promise.all([
    import("../config/given-values.ts"),
    import("../config/load.ts"),
    import("../config/user-file.ts"),
  ]);
  const { argv, env } = process;
  for (const words of [argv.slice(2), argv.slice(3), []]) {
    try {
      return bySource(message, new Map([...readUserFile({ env }).given, ...readGiven({ argv: words, env })]));
    } catch {
      // The arguments may hold flags of a command, or the very error.
    }
  }
  return message;
}

function tooOld(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major < MIN_NODE.major || (major === MIN_NODE.major && minor < MIN_NODE.minor);
}

if (tooOld()) {
  const { major, minor } = MIN_NODE;
  const needed = `${String(major)}.${String(minor)}`;
  console.error(
    `claude-agents-mcp needs Node ${needed} or newer; this is ${process.versions.node} (${process.execPath}).`,
  );
  process.exitCode = 1;
} else {
  try {
    process.exitCode = await run(process.argv.slice(2));
  } catch (error) {
    // After a failure, open handles may keep the process alive.
    process.exit(await report(error));
  }
}
