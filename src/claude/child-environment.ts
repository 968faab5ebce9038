import { homedir } from "node:os";
import { join } from "node:path";
import { isServerSetting } from "../domain/client-environment.ts";
import { DEPTH_VARIABLE, PRODUCT } from "../domain/names.ts";
import { isOuterSessionVariable } from "../domain/outer-session.ts";
import { invalidArgument } from "../domain/error.ts";
import type { Identity } from "../domain/process.ts";
import type { Profile } from "../domain/profile.ts";
import { MESSAGING, RESUME, STATE_EVENTS, whyReserved } from "../domain/reserved-variables.ts";

function isDropped(name: string): boolean {
  return isServerSetting(name) || isOuterSessionVariable(name) || name === RESUME;
}

interface Child {
  /** Nesting depth of the server itself. */
  depth: number;
  /** Claude configuration folder, if different from the server's. */
  configDir?: string | undefined;
  /** Variables added by the caller. */
  added?: Record<string, string>;
  /** Profile of the session. Its account and variables replace those of the client, the principal and the caller. */
  profile?: Profile | undefined;
  /** True if other Claude Code sessions must neither see nor reach the session. */
  isHidden?: boolean;
}

/**
 * Returns the environment of a Claude Code process: the server's own without variables of the server (an agent's shell must not
 * read its secrets) or of an outer session, with `added` and `profile` on top. Lacks the variables that `profile` takes from
 * files.
 */
export function childEnvironment(
  own: NodeJS.ProcessEnv,
  { added, configDir, depth, isHidden = false, profile }: Child,
): Record<string, string> {
  const kept = Object.entries(own).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !isDropped(entry[0]),
  );
  const given = {
    // A stdio MCP server without an answer would hold up the first turn for 30 s.
    MCP_TIMEOUT: "10000",
    ...Object.fromEntries(kept),
    CLAUDE_AGENT_SDK_CLIENT_APP: PRODUCT,
    ...(configDir !== undefined && { CLAUDE_CONFIG_DIR: configDir }),
    ...added,
  };
  return {
    ...(profile ? underProfile(given, profile) : given),
    [DEPTH_VARIABLE]: String(depth + 1),
    [STATE_EVENTS]: "1",
    ...(isHidden && { [MESSAGING]: "0" }),
  };
}

/** Throws INVALID_ARGUMENT for a variable reserved for the server. */
export function checkAddedVariables(added: Readonly<Record<string, string>> = {}): void {
  for (const name of Object.keys(added)) {
    const why = whyReserved(name);
    if (why !== undefined) throw invalidArgument(`env.${name}`, why);
  }
}

/** Folder of Claude Code's settings, transcripts and trust record, for a process with this environment. */
export function configFolder(environment: Readonly<Record<string, string | undefined>>): string {
  return environment["CLAUDE_CONFIG_DIR"] ?? join(environment["HOME"] ?? homedir(), ".claude");
}

/** Maximum size of `stateFile`, bytes. The file grows with every project, and a larger file is not read. */
export const MAX_STATE_BYTES = 67_108_864;

/** File beside `configFolder` with projects and their trust. */
export function stateFile(environment: Readonly<Record<string, string | undefined>>): string {
  const folder = environment["CLAUDE_CONFIG_DIR"] ?? environment["HOME"] ?? homedir();
  return join(folder, ".claude.json");
}

/** Returns the configuration folder and the payer of a Claude Code with this environment. */
export function identify(environment: Readonly<Record<string, string>>): Identity {
  return { configFolder: configFolder(environment), paidBy: payer(environment) };
}

/** Payers in the order of Claude Code's own search: variable, name of the payer, prefix of the credential's variables. */
const PAYERS = [
  ["CLAUDE_CODE_USE_BEDROCK", "Amazon Bedrock", "AWS_"],
  ["CLAUDE_CODE_USE_VERTEX", "Google Vertex", "GOOGLE_"],
  ["CLAUDE_CODE_USE_FOUNDRY", "Microsoft Foundry", "ANTHROPIC_FOUNDRY_"],
  ["ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"],
  ["ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"],
  ["CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
] as const;

function payerIn(environment: Readonly<Record<string, string>>) {
  return PAYERS.find(([name]) => isGiven(name, environment[name] ?? ""));
}

/** Clouds that pay too. Listed by name, because other variables with the prefix switch on features. */
const MORE_CLOUDS = [
  "CLAUDE_CODE_USE_ANTHROPIC_AWS",
  "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
  "CLAUDE_CODE_USE_MANTLE",
];
/** Words that switch a variable on for Claude Code; any other word is off. */
const SWITCHED_ON = /^\s*(?:1|true|yes|on)\s*$/i;

function isGiven(name: string, value: string): boolean {
  return name.startsWith("CLAUDE_CODE_USE_") ? SWITCHED_ON.test(value) : value !== "";
}

/** Returns the variable that determines the payer; `undefined` if only a login pays. */
export function payingVariable(environment: Readonly<Record<string, string>>): string | undefined {
  return payerIn(environment)?.[0] ?? MORE_CLOUDS.find((name) => isGiven(name, environment[name] ?? ""));
}

/** Variables that choose an account, its address or its models, apart from those in `PAYERS` and `MORE_CLOUDS`. */
const OF_ACCOUNT = /^(?:ANTHROPIC|CLAUDE_CODE_(?:ACCOUNT|API|CUSTOM_OAUTH|OAUTH|ORGANIZATION))_/;

/**
 * Adds configuration folder and variables of a profile. If the profile names an account, all others are removed first, because
 * Claude Code would prefer some of them, or send the profile's credential to their address.
 */
function underProfile(given: Readonly<Record<string, string>>, profile: Profile): Record<string, string> {
  const { claudeConfigDir, options } = profile;
  const own = { ...(claudeConfigDir !== undefined && { CLAUDE_CONFIG_DIR: claudeConfigDir }), ...options.env };
  const namesAccount = claudeConfigDir !== undefined || payingVariable(withUnread(own, profile)) !== undefined;
  const names: readonly string[] = [...PAYERS.map(([name]) => name), ...MORE_CLOUDS];
  const isKept = (name: string) => !namesAccount || !(OF_ACCOUNT.test(name) || names.includes(name));
  return { ...Object.fromEntries(Object.entries(given).filter(([name]) => isKept(name))), ...own };
}

/** Adds a mark for each variable that the profile takes from a file, for `identify`, which needs no credential. */
export function withUnread(
  environment: Readonly<Record<string, string>>,
  profile: Profile | undefined,
): Record<string, string> {
  const names = Object.keys(profile?.environment ?? {});
  return { ...environment, ...Object.fromEntries(names.map((name) => [name, "(in a file)"])) };
}

/** Name of the payer that no variable determines. */
export const LOGIN = "the Claude login of the configuration folder";

/** Returns the name of the payer, never any part of the credential. */
function payer(environment: Readonly<Record<string, string>>): string {
  return payerIn(environment)?.[1] ?? LOGIN;
}

/** Returns the variables that determine the payer's account. For comparison in memory only. */
export function credentialOf(environment: Readonly<Record<string, string>>): Record<string, string> {
  const begin = payerIn(environment)?.[2];
  if (begin === undefined) return {};
  return Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith(begin)));
}
