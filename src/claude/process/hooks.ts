import type {
  HookCallback,
  HookInput,
  Options,
  HookCallbackMatcher,
  HookJSONOutput,
  Settings,
} from "@anthropic-ai/claude-agent-sdk";
import { CAN_RUN } from "../../domain/approvals/risk.ts";
import { isClosed, judgeRequest, judgeShellEdit } from "../risk/judge.ts";
import { namedPaths, type Folders } from "../risk/places.ts";
import type { JsonObject } from "../../domain/json.ts";
import { isKeptByClaude } from "../../security/kept-by-claude.ts";
import { normalPath } from "../../security/normal-path.ts";
import { refusesPeers } from "../../domain/approvals/peer-message.ts";
import type { Confirm } from "./open-requests.ts";
import { messageGuard } from "./held-messages.ts";
import { skillGuard, strictest } from "./skill-commands.ts";
import { readRule, type Rule } from "../../domain/approvals/rule.ts";
import { isExactly, judgeCommand, type CommandRules } from "../../security/shell/rules.ts";

/**
 * Checks before each tool use, in every mode: in acceptEdits Claude Code would write files that run commands without approval, by
 * some shell commands too. The hook asks for approval there, and denies what may never be allowed.
 */

/** Modes in which all runs unasked. */
const UNASKED: ReadonlySet<string | undefined> = new Set(["auto", "bypassPermissions"]);

/** Time limit of a hook that asks an approver, s: as long as a request can be extended. Claude Code then takes it as denied. */
const ANSWER_S = 86_400;

/** Functions of the session that its hooks call. */
export interface HookBindings {
  /** Called before each use of a tool. */
  readonly guard: HookCallback;
  readonly confirm: Confirm;
}

/**
 * Hooks of a process: those of its session, and those that its options bring. Claude Code names them by their order, and a later server
 * goes on with them: a new kind of hook comes last.
 */
export function hooksOf(
  { confirm, guard }: HookBindings,
  {
    PreSkillShellCommand: skills,
    PreToolUse: own = [],
    UserPromptSubmit: messages,
    ...others
  }: NonNullable<Options["hooks"]> = {},
): NonNullable<Options["hooks"]> {
  const checks = [...own, { hooks: [guard] }];
  return {
    ...others,
    PreToolUse: checks,
    ...(messages && { UserPromptSubmit: [{ hooks: [messageGuard(confirm)], timeout: ANSWER_S }] }),
    ...(skills && { PreSkillShellCommand: [{ hooks: [skillGuard(checks, confirm)], timeout: ANSWER_S }] }),
  };
}

/** More than a process has ever been given. */
const NUMBERS = 16;

/**
 * Hooks of a process that another server has started. The process names them by the numbers that they had there, and takes no others;
 * that server may have had another set of them. So each number stands for all hooks of the event that it is called for.
 */
export function hooksByEvent(
  { confirm, guard }: HookBindings,
  given: NonNullable<Options["hooks"]> = {},
): NonNullable<Options["hooks"]> {
  const { PreToolUse: checks = [] } = hooksOf({ confirm, guard }, given);
  const onMessage = messageGuard(given.UserPromptSubmit ? confirm : async () => Promise.resolve(REFUSED));
  const onCommand = skillGuard(checks, confirm);
  const judge: HookCallback = async (input, ...about) => {
    if (input.hook_event_name === "PreToolUse") return strictest(checks, input, ...about);
    return input.hook_event_name === "UserPromptSubmit" ? onMessage(input, ...about) : onCommand(input, ...about);
  };
  return { PreToolUse: [{ hooks: Array.from({ length: NUMBERS }, () => judge) }] };
}

const REFUSED = "This server refuses messages of other sessions (PeerMessage is in none of its rules).";

interface GuardContext {
  readonly folders: Folders;
  /** Whether the session's own rules let every command run. */
  readonly allowsCommands: boolean;
}

export function fileGuard(context: GuardContext): HookCallback {
  return async (input) =>
    decide(input, context).catch(() => asked(input.permission_mode, "Its path cannot be determined"));
}

async function decide(hook: HookInput, context: GuardContext): ReturnType<HookCallback> {
  if (hook.hook_event_name !== "PreToolUse") return {};
  const { permission_mode: mode, tool_name: toolName, tool_input: input, tool_use_id: toolUseId } = hook;
  const given = typeof input === "object" && input !== null ? { ...input } : {};
  if (mode === "acceptEdits" && toolName === "Bash") return asEdit(given, context);
  const ask = { requestId: toolUseId, kind: "permission" as const, toolName, toolUseId, input: given };
  const { refused, risk } = await judgeRequest(ask, context.folders);
  if (refused !== undefined) return hookDecision("deny", refused);
  if (!risk?.why.includes(CAN_RUN) || UNASKED.has(mode) || (await isKept(toolName, given, context.folders))) return {};
  return asked(mode, CAN_RUN);
}

/** Tells whether all named files are Claude Code's own. Claude Code decides which of them need no question. */
async function isKept(toolName: string, input: JsonObject, folders: Folders): Promise<boolean> {
  const paths = (namedPaths(toolName, input) ?? []).map((named) => normalPath(named, folders));
  const kept = await Promise.all(paths.map(async (path) => path !== undefined && isKeptByClaude(path, folders)));
  return kept.length > 0 && kept.every(Boolean);
}

async function asEdit({ command }: { command?: unknown }, { allowsCommands, folders }: GuardContext) {
  const edit = typeof command === "string" ? await judgeShellEdit(command, folders) : undefined;
  if (edit?.closed) return hookDecision("deny", isClosed(edit.closed));
  return edit?.canRun === true && !allowsCommands ? hookDecision("ask", CAN_RUN) : {};
}

/** A session in `dontAsk` has no request: what would be asked is denied. */
function asked(mode: string | undefined, reason: string) {
  return mode === "dontAsk"
    ? hookDecision("deny", `${reason}, and this session does not ask.`)
    : hookDecision("ask", reason);
}

function hookDecision(permissionDecision: "ask" | "deny", permissionDecisionReason: string) {
  return { hookSpecificOutput: { hookEventName: "PreToolUse" as const, permissionDecision, permissionDecisionReason } };
}

/**
 * Rules for commands as they hold for what Claude Code does not ask about: it asks this hook before every tool, in every
 * permission mode and in subagents. Without such rules there is no hook.
 */

interface Guarded {
  /** Of the operator. */
  readonly rules: { readonly allow: readonly Rule[]; readonly ask: readonly Rule[]; readonly deny: readonly Rule[] };
  /** Of the session: they deny. */
  readonly disallowedTools: readonly string[];
}

/** All that runs commands. What is watched is run by Bash. */
const TOOLS: ReadonlyMap<string, string> = new Map([
  ["Bash", "Bash"],
  ["Monitor", "Bash"],
  ["PowerShell", "PowerShell"],
  ["REPL", "REPL"],
]);

interface Guards {
  readonly hooks: NonNullable<Options["hooks"]>;
  readonly settings: Settings;
}

/**
 * Hooks and settings for a process. `canHold`: hooks of this Claude Code can hold messages of other sessions, and commands of skills. An empty list of hooks asks `hooksOf` for one that needs the session.
 */
export function declaredGuards(guarded: Guarded, canHold: boolean): Guards {
  const hooks = commandGuard(guarded);
  const asks = canHold && !refusesPeers(guarded.rules.deny);
  return {
    hooks: { ...hooks, ...(asks && { UserPromptSubmit: [] }), ...(canHold && { PreSkillShellCommand: [] }) },
    settings: {
      // Without the hook Claude Code runs what stands in a skill as a command, whatever the rules are.
      ...(hooks && !canHold && { disableSkillShellExecution: true }),
      crossSessionInbound: asks ? "accept" : "refuse",
      // Prompts and answers from there would pass the approval chain by.
      disableRemoteControl: true,
    },
  };
}

export function commandGuard({ disallowedTools, rules }: Guarded): Options["hooks"] {
  const denied = disallowedTools.flatMap((text) => readRule(text) ?? []);
  const all = { allow: rules.allow, ask: rules.ask, deny: [...rules.deny, ...denied] };
  if (![...all.ask, ...all.deny].some(isForCommands)) return undefined;
  const guard: HookCallbackMatcher = {
    matcher: [...TOOLS.keys()].join("|"),
    hooks: [async (input) => Promise.resolve(answer(all, input))],
  };
  return { PreToolUse: [guard] };
}

function isForCommands({ content, toolName }: Pick<Rule, "content" | "toolName">): boolean {
  return content !== undefined && (toolName === "Bash" || toolName === "PowerShell");
}

type Named = Pick<Rule, "content" | "toolName">;

interface All {
  readonly allow: readonly Named[];
  readonly ask: readonly Named[];
  readonly deny: readonly Named[];
}

const ADVICE =
  "Run it as one plain command: a program name and literal arguments, without code for another program to run. " +
  "If that is not possible, do without it, or tell the user.";

function answer(all: All, input: HookInput): HookJSONOutput {
  if (input.hook_event_name !== "PreToolUse") return {};
  const tool = TOOLS.get(input.tool_name);
  if (tool === undefined) return {};
  const { permission_mode: mode } = input;
  const isUnasked = mode === "bypassPermissions" || mode === "dontAsk";
  if (tool === "REPL")
    return hookDecision(
      isUnasked ? "deny" : "ask",
      "Code of the REPL cannot be checked against this server's command rules.",
    );
  const command = commandOf(input.tool_input);
  if (command === undefined) return hookDecision("deny", "The command is missing.");
  const rules = contentsFor(all, tool);
  const verdict = judgeCommand(rules, command, tool === "Bash");
  if (!verdict) return {};
  if (verdict.behavior !== "unreadable") {
    const why = `The command rule ${tool}(${verdict.content}) decides (${verdict.behavior})`;
    return verdict.behavior === "ask" ? asked(mode, why) : hookDecision("deny", `${why}.`);
  }
  if (rules.allow.some((content) => isExactly(content, command))) return {};
  const why = `This command cannot be checked against the command rules: ${verdict.problem}.`;
  return isUnasked ? hookDecision("deny", `${why} ${ADVICE}`) : hookDecision("ask", why);
}

function contentsFor({ allow, ask, deny }: All, tool: string): Required<CommandRules> {
  const of = (rules: readonly Named[]) =>
    rules.flatMap(({ content, toolName }) => (toolName === tool && content !== undefined ? [content] : []));
  return { allow: of(allow), ask: of(ask), deny: of(deny) };
}

function commandOf(input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || !("command" in input)) return undefined;
  return typeof input.command === "string" ? input.command : undefined;
}
