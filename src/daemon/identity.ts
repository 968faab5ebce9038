import { createHmac } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { delimiter } from "node:path";
import { daemonEnvironment, type Environment } from "./environment.ts";
import { inheritedTraits } from "./inherited.ts";
import { absolutePath, directoriesIn, PATH_SETTINGS, type PathSetting } from "../config/paths.ts";
import { isStorePath } from "../config/store-spelling.ts";
import { buildId, readPackage } from "../config/version.ts";
import { keyFor } from "../security/key-file.ts";

/**
 * Which daemon a process belongs to: that of all processes that would have made the same server. The name of the socket is made of
 * everything by which two servers could differ, under a key of the state folder, so that nothing can be read off it.
 */
export interface Identity {
  /** Of the socket. */
  readonly name: string;
  /** Arguments of `serve`, with absolute paths: a daemon has a folder of its own. */
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /**
   * A digest for each thing by which daemons can differ, by what it is called: a variable, a flag, or a trait of the process, whose
   * name has a space, so that no variable has it too.
   */
  readonly traits: Readonly<Record<string, string>>;
}

interface Start {
  /** Arguments of `serve`. */
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Environment;
  readonly stateFolder: string;
}

/** Throws where the state folder has no key that is the user's alone. */
export async function identityOf({ cwd, stateFolder, ...start }: Start): Promise<Identity> {
  const argv = withAbsolutePaths(withoutOwn(start.argv), cwd);
  const environment = daemonEnvironment(withAbsoluteVariables(start.env, cwd));
  const key = await keyFor("socket-name", stateFolder);
  const values = {
    ...ofProgram(),
    ...inheritedTraits(),
    ...flagsIn(argv),
    ...configFile(argv, environment),
    ...environment,
  };
  const digest = (text: string) => createHmac("sha256", key).update(text).digest("hex").slice(0, 24);
  const traits = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, digest(`${name}=${value}`)]));
  return { name: digest(JSON.stringify([argv, Object.entries(traits)])), argv, environment, traits };
}

/** Version, build and the program that runs it. */
function ofProgram(): Record<string, string> {
  const node = [realpathSync(process.execPath), process.version, ...process.execArgv];
  return {
    "package version": readPackage().version,
    "build of the package": buildId(),
    "Node program": JSON.stringify(node),
  };
}

/** A word that is no flag belongs to the flag before it. */
function flagsIn(argv: readonly string[]): Record<string, string> {
  const flags: Record<string, string> = {};
  let name = "other arguments";
  for (const word of argv) {
    const [first = "", inline] = word.split(/=(.*)/s);
    if (word.startsWith("--")) name = first;
    flags[name] = JSON.stringify([flags[name], word.startsWith("--") ? inline : word]);
  }
  return flags;
}

function configFile(argv: readonly string[], environment: Environment): Record<string, string> {
  const flags = argv.flatMap((word, at) => {
    if (word === "--config") return [argv[at + 1] ?? ""];
    return word.startsWith("--config=") ? [word.slice("--config=".length)] : [];
  });
  const path = flags.at(-1) ?? environment["CLAUDE_CODE_MCP_CONFIG"];
  if (path === undefined) return {};
  try {
    return { "configuration file": readFileSync(path, "base64") };
  } catch {
    // The server says what is wrong with it.
    return {};
  }
}

/** Flags that the proxy alone reads. */
const OF_THE_PROXY = ["--daemon"];

function withoutOwn(argv: readonly string[]): string[] {
  const isOwn = (word: string | undefined) => OF_THE_PROXY.includes(word ?? "");
  return argv.filter((word, at) => {
    const [name, inline] = word.split(/=(.*)/s);
    return !isOwn(name) && (inline !== undefined || !isOwn(argv[at - 1]));
  });
}

function withAbsolutePaths(argv: readonly string[], cwd: string): string[] {
  let before: PathSetting | undefined;
  return argv.map((word) => {
    const [name, inline] = word.split(/=(.*)/s);
    const own = PATH_SETTINGS.find(({ flag }) => name === `--${flag}`);
    const ofFlag = word.startsWith("--") ? undefined : before;
    before = inline === undefined ? own : undefined;
    if (own && inline !== undefined) return `--${own.flag}=${absoluteValue(own.flag, inline, cwd)}`;
    return ofFlag ? absoluteValue(ofFlag.flag, word, cwd) : word;
  });
}

function withAbsoluteVariables(env: Environment, cwd: string): Environment {
  const changed = PATH_SETTINGS.flatMap(({ flag, isList = false, variable }): [string, string][] => {
    const value = env[variable];
    if (value === undefined) return [];
    const paths = isList ? directoriesIn(value) : [value];
    return [[variable, paths.map((path) => absoluteValue(flag, path, cwd)).join(delimiter)]];
  });
  return { ...env, ...Object.fromEntries(changed) };
}

/** What is no path stays as it was written: the server says what is wrong with it. */
function absoluteValue(flag: string, text: string, cwd: string): string {
  return text === "" || (flag === "store" && !isStorePath(text)) ? text : absolutePath(text, cwd);
}
