import { tighter } from "../domain/approvals/risk.ts";
import { CALLER, type ApproverName } from "../domain/approvals/answer-source.ts";
import { AddedPolicy, type Places, type SessionPolicy } from "../domain/approvals/session-policy.ts";

/**
 * Two policies as one that is no looser than either: the one place that combines what two servers allow. A part of
 * SessionPolicy that is not combined here does not compile.
 */

/** `home` is that of `present`, the server that runs the session now. */
export function tighterPolicy(stored: SessionPolicy | undefined, present: SessionPolicy): SessionPolicy {
  // A session of a server that stored no policy yet: only the present one is known.
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

/** The parts that a process of Claude Code is started under, and keeps. */
export const OF_PROCESSES: readonly (keyof AddedPolicy)[] = ["mayNest", "places", "rules", "sandbox", "sandboxDomains"];

/** What `other` adds to these parts of the policy that a session began under; undefined where that is at least as strict already. */
export function addedBy(
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

/** The policy that a session began under, with what was added to it. */
export function withAdded(begun: SessionPolicy, { rules, ...parts }: AddedPolicy = {}): SessionPolicy {
  if (!rules) return { ...begun, ...parts };
  const { allow } = rules;
  const ask = [...begun.rules.ask, ...rules.ask];
  return { ...begun, ...parts, rules: { allow, ask, deny: [...begun.rules.deny, ...rules.deny] } };
}

/** Whether a process that was started under `started` is kept from all that `wanted` forbids. */
export function isAsStrict(started: SessionPolicy, wanted: SessionPolicy): boolean {
  const both = tighterPolicy(wanted, started);
  return OF_PROCESSES.every((name) => isSame(name, both, started));
}

function isSame(name: keyof AddedPolicy, one: SessionPolicy, other: SessionPolicy): boolean {
  const [mine, yours] = [one[name], other[name]].map((part) => (name === "approvalChain" ? part : inOrder(part)));
  return JSON.stringify(mine) === JSON.stringify(yours);
}

/** Of all lists but that of approvers the order says nothing. */
function inOrder(part: unknown): unknown {
  if (Array.isArray(part)) return part.map((each) => JSON.stringify(each)).toSorted();
  if (typeof part !== "object" || part === null) return part;
  const entries = Object.entries(part).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return entries.map(([name, value]) => [name, inOrder(value)]);
}

/** What either denies or asks about is denied or asked; what is allowed must be allowed by the same rule in both. */
function commonRules(stored: SessionPolicy, { home, rules }: SessionPolicy): SessionPolicy["rules"] {
  const former = (texts: readonly string[]) =>
    texts.map((text) => (stored.home === home ? text : withHome(text, stored)));
  const allowed = new Set(former(stored.rules.allow));
  return {
    allow: rules.allow.filter((text) => allowed.has(text)),
    ask: distinct([...former(stored.rules.ask), ...rules.ask]),
    deny: distinct([...former(stored.rules.deny), ...rules.deny]),
  };
}

/** Without the sandbox there is no bound of hosts. */
function commonDomains(stored: SessionPolicy, present: SessionPolicy): string[] {
  if (stored.sandbox === "off") return present.sandboxDomains;
  if (present.sandbox === "off") return stored.sandboxDomains;
  return present.sandboxDomains.filter((domain) => stored.sandboxDomains.includes(domain));
}

/** Where the servers have different home folders, `~` of the other one is written out. */
function withHome(text: string, { home }: Pick<SessionPolicy, "home">): string {
  const [, toolName = "", way = ""] = /^(Read|Edit)\(~(\/.*)?\)$/s.exec(text) ?? [];
  if (toolName === "") return text;
  const folder = home.replace(/^([A-Za-z]):/, (_, drive: string) => `/${drive.toLowerCase()}`).replaceAll("\\", "/");
  return `${toolName}(/${folder.replaceAll(/[*?[]/g, "[$&]")}${way})`;
}

/** Approvers on both. The caller comes after every approver that precedes it on either. */
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
