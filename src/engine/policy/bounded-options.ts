import type { Bound } from "../../domain/approvals/risk.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { type OptionsWith, traitsOf } from "../../domain/options/traits.ts";
import { leftOutText, mayUseMode } from "./bound.ts";

/** Removes session options that approve more than the caller's bound. */

export interface Withheld<T> {
  readonly options: T;
  /** A sentence for each part that was left out. */
  readonly withheld: readonly string[];
}

type Given = Partial<SessionOptions>;

/** Change of the options (`undefined` removes an option), and the left-out part in words; `undefined` if nothing is cut. */
type Cut = readonly [change: { readonly [K in keyof Given]?: Given[K] | undefined }, what: string] | undefined;

/** Each function removes one option, or part of it, and names the removed part. */
const CUTS: { readonly [K in OptionsWith<"approves", "by value">]: (options: Given, bound: Bound) => Cut } = {
  permissionMode: cutMode,
  allowedTools: cutTools,
  agents: cutAgents,
  sandbox: cutSandbox,
  skills: cutSkills,
  mcpServers: cutServers,
};

/** Leaves the options named in `exempt` unchanged, because the operator has chosen them. */
export function withinBound<T extends Given>(
  options: T,
  bound: Bound,
  exempt: ReadonlySet<string> = new Set(),
): Withheld<T> {
  const { options: within, parts } = cutBeyond(options, bound, exempt);
  return { options: within, withheld: parts.map((what) => leftOutText(what, bound)) };
}

/** Leaves out what approves more than `bound`. Returns the names of the parts, too. */
export function cutBeyond<T extends Given>(
  options: T,
  bound: Bound,
  exempt: ReadonlySet<string> = new Set(),
): { readonly options: T; readonly parts: readonly string[] } {
  if (bound === "all") return { options, parts: [] };
  const found = Object.entries(CUTS).map(([name, cut]) => (exempt.has(name) ? undefined : cut(options, bound)));
  const cuts = [...found.filter((cut) => cut !== undefined), ...cutWhole(options, exempt)];
  const within = { ...options };
  for (const [name, value] of cuts.flatMap(([change]) => Object.entries(change))) {
    if (value === undefined) Reflect.deleteProperty(within, name);
    else Reflect.set(within, name, value);
  }
  return { options: within, parts: cuts.map(([, what]) => what) };
}

/** Removes options that may let anything run without asking, whatever the value (`approves: "everything"`). */
function cutWhole(options: Given, exempt: ReadonlySet<string>): NonNullable<Cut>[] {
  const isCut = (name: string) => traitsOf(name).approves === "everything" && !exempt.has(name);
  const names = Object.keys(options).filter(isCut);
  return names.map((name) => [{ [name]: undefined }, name]);
}

function cutMode({ permissionMode: mode }: Given, bound: Bound): Cut {
  if (mode === undefined || mayUseMode(mode, bound)) return undefined;
  return [{ permissionMode: "default" }, `permissionMode ${mode}`];
}

/**
 * Removes every rule except those for `HARMLESS` tools: a rule with only a tool's name allows any input, and an allowed path
 * may be a link to another place, so each rule may approve the risk `all`.
 */
function cutTools({ allowedTools }: Given): Cut {
  const kept = allowedTools?.filter((rule) => HARMLESS.has(rule)) ?? [];
  const cut = allowedTools?.filter((rule) => !HARMLESS.has(rule)) ?? [];
  return cut.length === 0 ? undefined : [{ allowedTools: kept }, `allowedTools ${cut.join(", ")}`];
}

/** Tools without an effect outside the session, so that rules for them approve nothing. */
const HARMLESS: ReadonlySet<string> = new Set(["AskUserQuestion", "TaskGet", "TaskList", "TodoWrite", "ToolSearch"]);

function cutAgents({ agents }: Given, bound: Bound): Cut {
  const cut: string[] = [];
  const changed = Object.entries(agents ?? {}).map(([name, { mcpServers, permissionMode: mode, ...agent }]) => {
    const isTooMuch = mode !== undefined && !mayUseMode(mode, bound);
    if (isTooMuch) cut.push(`agents.${name}.permissionMode ${mode}`);
    const servers = mcpServers?.map((each) => (typeof each === "string" ? each : askingServers(each).servers));
    const allows = mcpServers?.some((each) => typeof each !== "string" && askingServers(each).cut.length > 0);
    if (allows) cut.push(`agents.${name}.mcpServers`);
    const kept = {
      ...(servers && { mcpServers: servers }),
      ...(mode !== undefined && !isTooMuch && { permissionMode: mode }),
    };
    return [name, { ...agent, ...kept }] as const;
  });
  return cut.length === 0 ? undefined : [{ agents: Object.fromEntries(changed) }, cut.join(", ")];
}

/**
 * Sets `autoAllowBashIfSandboxed` to false, because sandboxed commands otherwise run without asking. An explicit `true` is cut
 * without `enabled`, too, because a settings file may enable the sandbox.
 */
function cutSandbox({ sandbox: { autoAllowBashIfSandboxed: isAllowed, enabled } = {}, sandbox }: Given): Cut {
  if (isAllowed === false || (enabled !== true && isAllowed !== true)) return undefined;
  return [{ sandbox: { ...sandbox, autoAllowBashIfSandboxed: false } }, "sandbox.autoAllowBashIfSandboxed"];
}

/** Removes all `skills`, because skills named there run without asking and may bring allow rules. */
function cutSkills({ skills }: Given): Cut {
  if (skills === undefined || skills.length === 0) return undefined;
  return [{ skills: undefined }, `skills ${skills === "all" ? "all" : skills.join(", ")}`];
}

function cutServers({ mcpServers = {} }: Given): Cut {
  const { cut, servers } = askingServers(mcpServers);
  return cut.length === 0 ? undefined : [{ mcpServers: servers }, cut.join(", ")];
}

type Servers = NonNullable<Given["mcpServers"]>;

/** Returns the servers without `always_allow` policies of tools. */
function askingServers(given: Servers): { servers: Servers; cut: string[] } {
  const cut: string[] = [];
  const changed = Object.entries(given).map(([name, server]) => {
    if (!("url" in server) || !server.tools) return [name, server] as const;
    const tools = server.tools.filter(({ permission_policy: policy }) => policy !== "always_allow");
    if (tools.length < server.tools.length) cut.push(`mcpServers.${name}.tools`);
    return [name, { ...server, tools }] as const;
  });
  return { servers: Object.fromEntries(changed), cut };
}
