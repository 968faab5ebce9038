import { tighter } from "../domain/approvals/risk.ts";
import { CALLER, type ApproverName } from "../domain/approvals/answer-source.ts";
import { AddedPolicy, type Places, type SessionPolicy } from "../domain/approvals/session-policy.ts";

/**
 * Combines two policies into one no looser than either. The only module that combines policies of two servers. A part of
 * `SessionPolicy` not combined here does not compile.
 */

/** `home` is that of `present`, the policy of the server that runs the session now. */
export function tighterPolicy(stored: SessionPolicy | undefined, present: SessionPolicy): SessionPolicy {
  // The session began on a server that stored no policy yet, so only the present policy is known.
  if (!stored) return present;
  return {
    home: present.home,
    rules: commonRules(stored, present),
    callerApproves: tighter(stored.callerApproves, present.callerApproves),
    allowsBypass: stored.allowsBypass && present.allowsBypass,
    sandbox: stored.sandbox === "required" ? "required" : present.sandbox,
    sandboxDomains: commonDomains(stored, present),
    mayNest: stored.mayNest && present.mayNest,
    approvalChain: commonChain(stored.approvalChain, present.approvalChain),
    approverTimeoutMs: shorterTimeouts(stored.approverTimeoutMs, present.approverTimeoutMs),
    limits: shorterLimits(stored.limits, present.limits),
    places: distinct([...stored.places, ...present.places]),
    unattended: {
      requests: stored.unattended.requests === "deny" ? "deny" : present.unattended.requests,
      maxUsd: Math.min(stored.unattended.maxUsd, present.unattended.maxUsd),
    },
  };
}

/** Parts of a policy that a process of Claude Code keeps from its start. */
export const PROCESS_PARTS: readonly (keyof AddedPolicy)[] = [
  "mayNest",
  "places",
  "rules",
  "sandbox",
  "sandboxDomains",
];

/** Returns the parts of `names` that `other` tightens in the policy under which a session began; `undefined` if none. */
export function findAdditions(
  other: SessionPolicy,
  begun: SessionPolicy,
  names: readonly (keyof AddedPolicy)[] = AddedPolicy.keyof().options,
): AddedPolicy | undefined {
  const both = tighterPolicy(other, begun);
  const isNew = (behavior: "ask" | "deny") => (text: string) => !begun.rules[behavior].includes(text);
  const { allow, ask, deny } = both.rules;
  const parts = { ...both, rules: { allow, ask: ask.filter(isNew("ask")), deny: deny.filter(isNew("deny")) } };
  const tightened = names.filter((name) => !isSame(name, both, begun));
  if (tightened.length === 0) return undefined;
  return AddedPolicy.parse(Object.fromEntries(tightened.map((name) => [name, parts[name]])));
}

/** Returns the policy under which a session began, with additions. */
export function applyAdditions(begun: SessionPolicy, { rules, ...parts }: AddedPolicy = {}): SessionPolicy {
  if (!rules) return { ...begun, ...parts };
  const { allow } = rules;
  const ask = [...begun.rules.ask, ...rules.ask];
  return { ...begun, ...parts, rules: { allow, ask, deny: [...begun.rules.deny, ...rules.deny] } };
}

/** True if a process started under `started` is kept from everything that `wanted` forbids. */
export function isAsStrict(started: SessionPolicy, wanted: SessionPolicy): boolean {
  const both = tighterPolicy(wanted, started);
  return PROCESS_PARTS.every((name) => isSame(name, both, started));
}

function isSame(name: keyof AddedPolicy, one: SessionPolicy, other: SessionPolicy): boolean {
  const [mine, yours] = [one[name], other[name]].map((part) => (name === "approvalChain" ? part : sortLists(part)));
  return JSON.stringify(mine) === JSON.stringify(yours);
}

/** Sorts a list, because order matters only among approvers. */
function sortLists(part: unknown): unknown {
  if (Array.isArray(part)) return part.map((each) => JSON.stringify(each)).toSorted();
  if (typeof part !== "object" || part === null) return part;
  const entries = Object.entries(part).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return entries.map(([name, value]) => [name, sortLists(value)]);
}

/** Denies and asks by the rules of either policy; allows only by rules in both. */
function commonRules(stored: SessionPolicy, { home, rules }: SessionPolicy): SessionPolicy["rules"] {
  const former = (texts: readonly string[]) =>
    texts.map((text) => (stored.home === home ? text : writeOutHome(text, stored)));
  const allowed = new Set(former(stored.rules.allow));
  return {
    allow: rules.allow.filter((text) => allowed.has(text)),
    ask: distinct([...former(stored.rules.ask), ...rules.ask]),
    deny: distinct([...former(stored.rules.deny), ...rules.deny]),
  };
}

/** Ignores the hosts of a policy without sandbox, which bounds nothing. */
function commonDomains(stored: SessionPolicy, present: SessionPolicy): string[] {
  if (stored.sandbox === "off") return present.sandboxDomains;
  if (present.sandbox === "off") return stored.sandboxDomains;
  return present.sandboxDomains.filter((domain) => stored.sandboxDomains.includes(domain));
}

/** Writes out the stored `~` if the servers have different home folders. */
function writeOutHome(text: string, { home }: Pick<SessionPolicy, "home">): string {
  const [, toolName = "", below = ""] = /^(Read|Edit)\(~(\/.*)?\)$/s.exec(text) ?? [];
  if (toolName === "") return text;
  const folder = home.replace(/^([A-Za-z]):/, (_, drive: string) => `/${drive.toLowerCase()}`).replaceAll("\\", "/");
  return `${toolName}(/${folder.replaceAll(/[*?[]/g, "[$&]")}${below})`;
}

/** Returns the approvers on both chains. The caller comes after every approver that precedes it on either. */
function commonChain(one: readonly ApproverName[], other: readonly ApproverName[]): ApproverName[] {
  const both = one.filter((approver) => other.includes(approver));
  if (!both.includes(CALLER)) return both;
  const isBefore = (approver: ApproverName) =>
    [one, other].some((approvalChain) => approvalChain.indexOf(approver) < approvalChain.indexOf(CALLER));
  const people = both.filter((approver) => approver !== CALLER);
  return [...people.filter(isBefore), CALLER, ...people.filter((approver) => !isBefore(approver))];
}

function shorterTimeouts(
  one: SessionPolicy["approverTimeoutMs"],
  other: SessionPolicy["approverTimeoutMs"],
): SessionPolicy["approverTimeoutMs"] {
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  return Object.fromEntries(names.map((name) => [name, Math.min(one[name] ?? Infinity, other[name] ?? Infinity)]));
}

function shorterLimits(one: SessionPolicy["limits"], other: SessionPolicy["limits"]): SessionPolicy["limits"] {
  const least = (name: keyof SessionPolicy["limits"]) => Math.min(one[name], other[name]);
  return {
    requestDeliveredMs: least("requestDeliveredMs"),
    requestMaxMs: least("requestMaxMs"),
    requestUnseenMs: least("requestUnseenMs"),
    turnMaxMs: least("turnMaxMs"),
    inactivityMs: least("inactivityMs"),
    idleProcessMs: least("idleProcessMs"),
    stopGraceMs: least("stopGraceMs"),
  };
}

function distinct<T extends Places | string>(all: readonly T[]): T[] {
  return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];
}
