import type { z } from "zod";
import { BOUNDS, type Bound } from "../../domain/approvals/risk.ts";
import type { Approver } from "../../approvers/approver.ts";
import { APPROVERS } from "../../approvers/approvers.ts";
import { APPROVAL_ENTRY, APPROVAL_ENTRIES } from "./approvals-flag.ts";
import { PEER_MESSAGE } from "../../domain/approvals/peer-message.ts";
import { parseRule, type Rule, type RuleBehavior } from "../../domain/approvals/rule.ts";
import { KNOWN_TOOLS, knownTool } from "../../domain/options/known-tools.ts";
import { didYouMean } from "../../domain/suggest.ts";
import { inOrder, optionalChoice, rules, choice } from "../setting.ts";

/** Settings of permission requests: approvers, rules, and the most that the caller may approve. */
export const approvalFields = {
  approvals: inOrder(APPROVAL_ENTRY, APPROVAL_ENTRIES, {
    fallback: "user,caller,console:0",
    byHand: { values: APPROVERS.flatMap(wordsByHand), isOnceEach: true },
    flag: "approvals",
    variable: "CLAUDE_CODE_MCP_APPROVALS",
    meaning: `Approvers, in the order in which they are asked. They are: ${approverList()}. Each has its time (name:ms), then the next is asked; after the last, the request is denied. console:0 may answer at any time and is only asked about prompts given in the console. See docs/approvals.md.`,
  }),
  callerApproves: optionalChoice(BOUNDS, "all; with --http edits", {
    flag: "caller-approves",
    variable: "CLAUDE_CODE_MCP_CALLER_APPROVES",
    meaning:
      "Limit on approvals by the calling model. Through answers, options and modes it may approve nothing, reads or edits inside the session's folders, or everything. Requests beyond that go to other approvers.",
  }),
  allowRules: rules("allow", {
    flag: "allow-rules",
    variable: "CLAUDE_CODE_MCP_ALLOW_RULES",
    meaning: "Tool uses that run without approval. In Claude Code's rule syntax. Ask and deny rules take precedence.",
  }),
  askRules: rules("ask", {
    flag: "ask-rules",
    variable: "CLAUDE_CODE_MCP_ASK_RULES",
    meaning:
      "Tool uses that always need approval. In Claude Code's rule syntax. Read,Bash,Agent,Skill covers what Claude Code runs without approval in mode default. PeerMessage makes messages that other Claude Codes of this machine send to a session requests; without a rule for PeerMessage they are rejected, and the session is hidden from others.",
  }),
  denyRules: rules("deny", {
    flag: "deny-rules",
    variable: "CLAUDE_CODE_MCP_DENY_RULES",
    meaning: "Tool uses that are never allowed. In any permission mode, in Claude Code's rule syntax.",
  }),
};

/** Returns the entries of an approver that `byHand` can check: no setting and no time to validate. */
function wordsByHand({ check, name, time }: Approver): string[] {
  if (check) return [];
  return time.mayHaveNone === true ? [name, `${name}:0`] : [name];
}

function approverList(): string {
  return APPROVERS.map(({ help, name }) => (help === undefined ? name : `${name} (${help})`)).join(", ");
}

type ApprovalConfig = z.output<z.ZodObject<typeof approvalFields>>;

/** Denies messages of other sessions unless a rule allows or asks for `PEER_MESSAGE`. */
export function rulesOf({ allowRules, askRules, denyRules }: ApprovalConfig): Record<RuleBehavior, Rule[]> {
  const [allow, ask, deny] = [parsed(allowRules, "allow"), parsed(askRules, "ask"), parsed(denyRules, "deny")];
  const hearsPeers = [...allow, ...ask].some(({ toolName }) => toolName === PEER_MESSAGE);
  return { allow, ask, deny: hearsPeers ? deny : [...deny, ...parsed([PEER_MESSAGE], "deny")] };
}

export function callerApprovesOf({
  callerApproves,
  http,
}: Pick<ApprovalConfig, "callerApproves"> & { readonly http?: string | undefined }): Bound {
  return callerApproves ?? (http === undefined ? "all" : "edits");
}

/** Skips invalid rules, because the schema has refused them. */
function parsed(texts: readonly string[], behavior: RuleBehavior): Rule[] {
  return texts.flatMap((text) => {
    const read = parseRule(text, behavior);
    return read.ok ? [read.rule] : [];
  });
}

/** Returns a sentence for each rule with an unknown tool. Claude Code may have the tool, or the rule never matches. */
export function unknownTools(config: ApprovalConfig): string[] {
  const names = KNOWN_TOOLS.map(({ name }) => name);
  return Object.values(rulesOf(config))
    .flat()
    .filter(({ toolName }) => !toolName.startsWith("mcp__") && toolName !== PEER_MESSAGE && !knownTool(toolName))
    .map(({ text, toolName }) => {
      return `The rule ${text}: this server knows no tool ${toolName}.${didYouMean(toolName, names)}`;
    });
}

/** Settings of the sandbox for all sessions. */
export const sandboxFields = {
  sandbox: choice(["off", "required"], "off", {
    flag: "sandbox",
    variable: "CLAUDE_CODE_MCP_SANDBOX",
    meaning:
      "Require a sandbox for every session. With required, each runs in Claude Code's own sandbox (bubblewrap on Linux, Seatbelt on macOS): commands write in the session's folders only, and reach no host. The server does not start without a sandbox. With off, each session decides. See docs/security.md.",
  }),
};

/** Returns the hosts that rules let `WebFetch` read. */
export function hostsOf(allowRules: readonly Rule[]): string[] {
  return allowRules
    .filter(({ content, toolName }) => toolName === "WebFetch" && content?.startsWith(DOMAIN) === true)
    .map(({ content = "" }) => content.slice(DOMAIN.length));
}

const DOMAIN = "domain:";
