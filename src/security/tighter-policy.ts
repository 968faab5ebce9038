import { tighter } from "../domain/approvals/risk.ts";
import { CALLER, type ApproverName } from "../domain/approvals/answer-source.ts";
import type { Places, SessionPolicy } from "../domain/approvals/session-policy.ts";

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
  };
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
