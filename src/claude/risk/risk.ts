import { PEER_MESSAGE } from "../../domain/approvals/peer-message.ts";
import { CAN_RUN, isWithin, type Bound, type Risk } from "../../domain/approvals/risk.ts";
import type { JsonObject } from "../../domain/json.ts";
import { knownTool } from "../../domain/options/known-tools.ts";
import { isExecuting } from "../../security/executing-files.ts";
import { isEditor, isFileTool } from "../../security/file-tools.ts";

/** Rates a request by its tool and the named places. In doubt, the risk is `all`. */

/** Place named by a request. Both paths are absolute. */
export interface LocatedPath {
  readonly named: string;
  /** Real path; `undefined` if unknown. */
  readonly real: string | undefined;
  /** True if the real path lies inside the session's folders. */
  readonly isInside: boolean;
  /** True if named relative to a folder that Claude Code may have left. */
  readonly isRelative: boolean;
  /** True in a folder that is searched for programs. */
  readonly isOnPath: boolean;
  /** True for a hidden entry directly in the home folder, and below, unless a folder of the session lies in the entry. */
  readonly isOfHome: boolean;
  /** True if the name below the session's folder has invisible characters. */
  readonly isUnseen: boolean;
}

interface Request {
  readonly toolName: string;
  readonly input: JsonObject;
  /** All paths named by a file tool; `undefined` if unknown. */
  readonly places: readonly LocatedPath[] | undefined;
}

/** Shown to people. */
export const OUTSIDE = "outside the session's folders";

const UNSEEN = "a name with invisible characters";

/** Tools that look only at the session itself, or ask the person. */
const SESSION_TOOLS: ReadonlySet<string> = new Set([
  "AskUserQuestion",
  "BashOutput",
  "CronList",
  "EnterPlanMode",
  "ListAgents",
  "TaskGet",
  "TaskList",
  "TaskOutput",
  "TodoWrite",
  "ToolSearch",
]);

const EFFECT_BY_TOOL: ReadonlyMap<string, string> = new Map([
  ["Agent", "starts an agent"],
  ["Task", "starts an agent"],
  ["Workflow", "starts an agent"],
  ["RemoteTrigger", "starts an agent"],
  ["Skill", "runs a skill"],
  ["SlashCommand", "runs a skill"],
  ["WebFetch", "network"],
  ["WebSearch", "network"],
  ["SandboxNetworkAccess", "network"],
  ["REPL", "command"],
  ["Monitor", "command"],
  ["KillShell", "command"],
  ["TaskStop", "command"],
  [PEER_MESSAGE, "a message of another session"],
]);

const SHELLS: ReadonlySet<string> = new Set(["Bash", "PowerShell"]);

/** True if the tool looks only at the session itself. */
export function isSessionTool(toolName: string): boolean {
  return SESSION_TOOLS.has(toolName);
}

/** Includes Monitor, because a shell runs the command that Monitor watches. */
export function runsCommand(toolName: string): boolean {
  return SHELLS.has(toolName) || toolName === "Monitor";
}

export function isShell(toolName: string): boolean {
  return SHELLS.has(toolName);
}

export function rateRisk({ input, places, toolName }: Request): Risk {
  if (SESSION_TOOLS.has(toolName)) return { level: "reads", why: [] };
  if (toolName === "ExitPlanMode") return ratePlan(input);
  if (isFileTool(toolName)) return rateFiles(isEditor(toolName) ? "edits" : "reads", places);
  if (isShell(toolName)) {
    const { command } = input;
    return { level: "all", why: typeof command === "string" ? describeCommand(command) : ["command"] };
  }
  if (toolName.startsWith("mcp__")) return { level: "all", why: ["tool of an MCP server"] };
  return { level: "all", why: [EFFECT_BY_TOOL.get(toolName) ?? knownTool(toolName)?.description ?? "unknown tool"] };
}

/** Claude Code adds `plan` from its file. Without `plan`, an approver cannot see the effect. */
function ratePlan({ plan }: JsonObject): Risk {
  const why = "carries out a plan";
  const isShown = typeof plan === "string" && plan.trim() !== "";
  return isShown ? { level: "edits", why: [why] } : { level: "all", why: [why, "a plan that is not written down"] };
}

function rateFiles(least: Exclude<Bound, "none" | "all">, places: readonly LocatedPath[] | undefined): Risk {
  if (!places || places.length === 0) return { level: "all", why: ["a path that cannot be determined"] };
  const isEdit = !isWithin(least, "reads");
  const why = [
    ...(places.some(({ isInside }) => !isInside) ? [OUTSIDE] : []),
    ...(isEdit && places.some(({ isRelative }) => isRelative) ? ["a path that is not absolute"] : []),
    ...(isEdit && places.some(({ isUnseen }) => isUnseen) ? [UNSEEN] : []),
    ...(isEdit && places.some((place) => place.isUnseen || canRunCommands(place)) ? [CAN_RUN] : []),
  ];
  return why.length > 0 ? { level: "all", why } : { level: least, why };
}

/** True if a file there can make programs run commands, by its named or its real path. */
export function canRunCommands({ isOnPath, isOfHome, named, real = named }: LocatedPath): boolean {
  return isOnPath || isOfHome || isExecuting(named) || isExecuting(real);
}

/** Describes a shell command for people only: the risk of a command is always the highest. */

/** Length of the examined beginning of a command, characters. */
const MAX_EXAMINED_CHARS = 10_000;

const NETWORK: readonly RegExp[] = [
  /\b(?:curl|wget|ssh|scp|sftp|ftp|rsync|telnet|nc|ncat|netcat|socat)\b/,
  /\bgit\s+(?:push|pull|fetch|clone|ls-remote|submodule)\b/,
  /\b(?:npm|pnpm|yarn|bun)\s+(?:publish|install|ci|i|add|update|login)\b/,
  /\b(?:npx|bunx|uvx)\b/,
  /\b(?:pip3?|uv|pipx|gem|go|cargo|brew|apt|apt-get|dnf|yum)\s+(?:\S+\s+)?(?:install|add|get|publish|push|download)\b/,
  /\b(?:docker|podman)\s+(?:push|pull|login)\b/,
  /\b(?:gh|aws|gcloud|az|kubectl|twine)\s/,
  /\b(?:Invoke-WebRequest|Invoke-RestMethod|iwr|irm)\b/i,
  /\b(?:https?|ftp):\/\//i,
  /\/dev\/(?:tcp|udp)\//,
];

const DESTRUCTIVE: readonly RegExp[] = [
  /\brm\s(?:[^\n;&|]*\s)?(?:-[a-zA-Z]*[rR]|--recursive)/,
  /\b(?:rd|rmdir|Remove-Item)\b[^\n;&|]*(?:\s\/s\b|-Recurse)/i,
  /\bfind\b[^\n;|]*\s-(?:delete|exec(?:dir)?\s+rm)\b/,
  /\bxargs\b[^\n;|]*\brm\b/,
  /\bgit\s+reset\b[^\n;&|]*--hard/,
  /\bgit\s+clean\b[^\n;&|]*\s-[a-zA-Z]*f/,
  /\bgit\s+push\b[^\n;&|]*\s(?:--force\S*|--delete|--mirror|-[a-zA-Z]*f|\+\S)/,
  /\bgit\s+branch\b[^\n;&|]*\s-D/,
  /\bdd\s[^\n;&|]*\bof=/,
  /\b(?:mkfs(?:\.\w+)?|shred|wipefs|fdisk|parted|truncate)\b/,
  />\s*\/dev\/(?!null\b|stdout\b|stderr\b|tty\b|fd\/)/,
  /\b(?:drop\s+(?:table|database|schema)|truncate\s+table|delete\s+from)\b/i,
  /\b(?:chmod|chown|chgrp)\s[^\n;&|]*(?:-[a-zA-Z]*R|--recursive)/,
  /\b(?:kill|pkill|killall|shutdown|reboot|halt|poweroff)\b/,
];

function describeCommand(command: string): string[] {
  const text = command.slice(0, MAX_EXAMINED_CHARS);
  const isOne = (of: readonly RegExp[]) => of.some((sign) => sign.test(text));
  return ["command", ...(isOne(NETWORK) ? ["network"] : []), ...(isOne(DESTRUCTIVE) ? ["destructive command"] : [])];
}
