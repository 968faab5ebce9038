import type {
  HookCallback,
  HookInput,
  Options,
  HookCallbackMatcher,
  HookJSONOutput,
  Settings,
} from "@anthropic-ai/claude-agent-sdk";
import { CAN_RUN } from "../../domain/approvals/risk.ts";
import { closedText, judgeRequest, judgeShellEdit } from "../risk/judge.ts";
import type { Folders } from "../risk/named-paths.ts";
import type { JsonObject } from "../../domain/json.ts";
import { isKeptByClaude } from "../../security/claude-own-files.ts";
import { namedPaths } from "../../security/file-tools.ts";
import { normalPath } from "../../security/normal-path.ts";
import { refusesPeers } from "../../domain/approvals/peer-message.ts";
import { settlesWithin } from "./control.ts";
import type { Confirm } from "./open-requests.ts";
import { peerMessageGuard } from "./peer-messages.ts";
import { skillGuard, strictest } from "./skill-commands.ts";
import { readRule, type Rule } from "../../domain/approvals/rule.ts";
import { isExactly, judgeCommand, type CommandRules } from "../../security/shell/rules.ts";

/**
 * Checks each tool use in every permission mode. In `acceptEdits`, Claude Code would write files that run commands without
 * approval, also by some shell commands: the hook asks for approval there, and denies uses that can never be allowed.
 */

/** Modes that run everything without approval. */
const UNASKED: ReadonlySet<string | undefined> = new Set(["auto", "bypassPermissions"]);

/** Time limit of a hook that asks an approver, s: the longest extension of a request. Afterwards Claude Code denies the use. */
const ANSWER_S = 86_400;

/** Functions of the session, called by its hooks. */
export interface HookBindings {
  /** Called before each tool use. */
  readonly guard: HookCallback;
  readonly confirm: Confirm;
}

/**
 * Returns the hooks of a process: of its session and of its options. Claude Code identifies hooks by their order, also for a
 * later server, so that a new kind of hook must come last.
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
    ...(messages && { UserPromptSubmit: [{ hooks: [peerMessageGuard(confirm)], timeout: ANSWER_S }] }),
    ...(skills && { PreSkillShellCommand: [{ hooks: [skillGuard(checks, confirm)], timeout: ANSWER_S }] }),
  };
}

/** Upper bound for the number of hooks ever given to a process. */
const MAX_HOOKS = 16;

/**
 * Returns hooks for a process started by another server, perhaps with a different set of hooks. The process calls hooks by
 * their former numbers, so each number runs all hooks of the event.
 */
export function hooksByEvent(
  { confirm, guard }: HookBindings,
  given: NonNullable<Options["hooks"]> = {},
): NonNullable<Options["hooks"]> {
  const { PreToolUse: checks = [] } = hooksOf({ confirm, guard }, given);
  const onMessage = peerMessageGuard(given.UserPromptSubmit ? confirm : async () => Promise.resolve(REFUSED));
  const onCommand = skillGuard(checks, confirm);
  const judge: HookCallback = async (input, ...about) => {
    if (input.hook_event_name === "PreToolUse") return strictest(checks, input, ...about);
    return input.hook_event_name === "UserPromptSubmit" ? onMessage(input, ...about) : onCommand(input, ...about);
  };
  return { PreToolUse: [{ hooks: Array.from({ length: MAX_HOOKS }, () => judge) }] };
}

const REFUSED = "This server refuses messages of other sessions (PeerMessage is in none of its rules).";

/** Maximum time for which a tool use waits, ms. */
const HOLD_MS = 2_000;

/** Lets tool uses wait until the server has seen the folders, so that no change of a turn comes before the look. */
export class ToolHold {
  #until: Promise<unknown> = Promise.resolve();

  waitFor(until: Promise<unknown>): void {
    this.#until = until;
  }

  guard(guard: HookCallback): HookCallback {
    return async (...call) => {
      await settlesWithin(HOLD_MS, this.#until);
      return guard(...call);
    };
  }
}

interface GuardContext {
  readonly folders: Folders;
  /** True if the session's rules let every command run. */
  readonly allowsCommands: boolean;
}

export function fileGuard(context: GuardContext): HookCallback {
  return async (input) =>
    judgeToolUse(input, context).catch(() => askOrDeny(input.permission_mode, "Its path cannot be determined"));
}

async function judgeToolUse(hook: HookInput, context: GuardContext): ReturnType<HookCallback> {
  if (hook.hook_event_name !== "PreToolUse") return {};
  const { permission_mode: mode, tool_name: toolName, tool_input: input, tool_use_id: toolUseId } = hook;
  const given = typeof input === "object" && input !== null ? { ...input } : {};
  if (mode === "acceptEdits" && toolName === "Bash") return asEdit(given, context);
  const ask = { requestId: toolUseId, kind: "permission" as const, toolName, toolUseId, input: given };
  const { refused, risk } = await judgeRequest(ask, context.folders);
  if (refused !== undefined) return hookDecision("deny", refused);
  if (!risk?.why.includes(CAN_RUN) || UNASKED.has(mode) || (await areClaudeFiles(toolName, given, context.folders)))
    return {};
  return askOrDeny(mode, CAN_RUN);
}

/** True if all named files belong to Claude Code, which then decides about asking. */
async function areClaudeFiles(toolName: string, input: JsonObject, folders: Folders): Promise<boolean> {
  const paths = (namedPaths(toolName, input) ?? []).map((named) => normalPath(named, folders));
  const kept = await Promise.all(paths.map(async (path) => path !== undefined && isKeptByClaude(path, folders)));
  return kept.length > 0 && kept.every(Boolean);
}

async function asEdit({ command }: { command?: unknown }, { allowsCommands, folders }: GuardContext) {
  const edit = typeof command === "string" ? await judgeShellEdit(command, folders) : undefined;
  if (edit?.closed) return hookDecision("deny", closedText(edit.closed));
  return edit?.canRun === true && !allowsCommands ? hookDecision("ask", CAN_RUN) : {};
}

/** Denies in `dontAsk`, because such a session makes no requests. */
function askOrDeny(mode: string | undefined, reason: string) {
  return mode === "dontAsk"
    ? hookDecision("deny", `${reason}, and this session does not ask.`)
    : hookDecision("ask", reason);
}

function hookDecision(permissionDecision: "ask" | "deny", permissionDecisionReason: string) {
  return { hookSpecificOutput: { hookEventName: "PreToolUse" as const, permissionDecision, permissionDecisionReason } };
}

/**
 * Applies command rules also to uses that Claude Code would not ask about: the hook runs before every tool, in every permission
 * mode and in subagents. Without command rules there is no hook.
 */

interface CommandRestrictions {
  /** Rules of the operator. */
  readonly rules: { readonly allow: readonly Rule[]; readonly ask: readonly Rule[]; readonly deny: readonly Rule[] };
  /** Rules of the session, denying only. */
  readonly disallowedTools: readonly string[];
}

/** Tools that run commands, by the tool of their rules. `Monitor` runs commands with Bash. */
const TOOLS: ReadonlyMap<string, string> = new Map([
  ["Bash", "Bash"],
  ["Monitor", "Bash"],
  ["PowerShell", "PowerShell"],
  ["REPL", "REPL"],
]);

interface HookSettings {
  readonly hooks: NonNullable<Options["hooks"]>;
  readonly settings: Settings;
}

/**
 * Returns hooks and settings for a process. `canHold`: this Claude Code has hooks that can hold messages of other sessions and
 * commands of skills. An empty list makes `hooksOf` add the hook bound to the session.
 */
export function declareHooks(guarded: CommandRestrictions, canHold: boolean): HookSettings {
  const hooks = commandGuard(guarded);
  const asks = canHold && !refusesPeers(guarded.rules.deny);
  return {
    hooks: { ...hooks, ...(asks && { UserPromptSubmit: [] }), ...(canHold && { PreSkillShellCommand: [] }) },
    settings: {
      // Without the hook, Claude Code runs commands in skills whatever the rules are.
      ...(hooks && !canHold && { disableSkillShellExecution: true }),
      crossSessionInbound: asks ? "accept" : "refuse",
      // Prompts and answers of remote control would bypass the approval chain.
      disableRemoteControl: true,
    },
  };
}

export function commandGuard({ disallowedTools, rules }: CommandRestrictions): Options["hooks"] {
  const denied = disallowedTools.flatMap((text) => readRule(text) ?? []);
  const all = { allow: rules.allow, ask: rules.ask, deny: [...rules.deny, ...denied] };
  if (![...all.ask, ...all.deny].some(isForCommands)) return undefined;
  const guard: HookCallbackMatcher = {
    matcher: [...TOOLS.keys()].join("|"),
    hooks: [async (input) => Promise.resolve(judgeCommandUse(all, input))],
  };
  return { PreToolUse: [guard] };
}

function isForCommands({ content, toolName }: Pick<Rule, "content" | "toolName">): boolean {
  return content !== undefined && (toolName === "Bash" || toolName === "PowerShell");
}

type Named = Pick<Rule, "content" | "toolName">;

interface RulesByBehavior {
  readonly allow: readonly Named[];
  readonly ask: readonly Named[];
  readonly deny: readonly Named[];
}

const ADVICE =
  "Run it as one plain command: a program name and literal arguments, without code for another program to run. " +
  "If that is not possible, do without it, or tell the user.";

function judgeCommandUse(all: RulesByBehavior, input: HookInput): HookJSONOutput {
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
    return verdict.behavior === "ask" ? askOrDeny(mode, why) : hookDecision("deny", `${why}.`);
  }
  if (rules.allow.some((content) => isExactly(content, command))) return {};
  const why = `This command cannot be checked against the command rules: ${verdict.problem}.`;
  return isUnasked ? hookDecision("deny", `${why} ${ADVICE}`) : hookDecision("ask", why);
}

function contentsFor({ allow, ask, deny }: RulesByBehavior, tool: string): Required<CommandRules> {
  const of = (rules: readonly Named[]) =>
    rules.flatMap(({ content, toolName }) => (toolName === tool && content !== undefined ? [content] : []));
  return { allow: of(allow), ask: of(ask), deny: of(deny) };
}

function commandOf(input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || !("command" in input)) return undefined;
  return typeof input.command === "string" ? input.command : undefined;
}
