import { parseRule, type Rule, type RuleBehavior } from "../../domain/approvals/rule.ts";
import { AppError, type Refusal } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Profiles } from "../../domain/profile.ts";
import type { SessionPolicy } from "../../domain/approvals/session-policy.ts";
import { findAdditions, tighterPolicy, applyAdditions } from "../../security/tighter-policy.ts";
import { type Gate, checkDecision, checkMode } from "./gate.ts";
import { policyOf, UNLIMITED_USE, type Limits, type Policy, type UsePolicy, type WhileUnattended } from "./policy.ts";
import type { PlacedSession, SessionRecord } from "../ports.ts";
import { CALLER } from "../../domain/approvals/answer-source.ts";
import type { Command } from "../../domain/command.ts";
import { checkModeWithin, decisionWithin } from "./bound.ts";

/** Terms of this server's operator, as stored with a session, and the effect on sessions of other operators. */

/** Terms for a client, or the server itself, to start and continue sessions. */
export interface Operator {
  /** `gate.placesOf` belongs to these terms as well. */
  readonly gate: Gate;
  readonly limits: Limits;
  /** Default of `sessionInitTimeoutMs`, ms. */
  readonly initMs: number;
  /** Environment record for the processes of the client's sessions; "" for the server's own environment. */
  readonly environmentId: string;
  /** Terms that no session may leave, whatever `gate` and `limits` say: the tighter of both holds. */
  readonly bounds?: Pick<Operator, "gate" | "limits"> | undefined;
  /**
   * True for a server that runs the sessions of many clients. Only `bounds` are added to the policy of a session; the server's
   * own terms are for sessions without a policy, and for work that no client has sent.
   */
  readonly addsOnlyBounds?: boolean | undefined;
}

type StoredTerms = Pick<SessionRecord, "policy" | "principal">;

/** Returns the policy of a session that begins under these terms: `own` tightened by `bounds`. */
export function ownPolicy({ bounds, ...own }: Terms, principal: Principal): SessionPolicy {
  return tighterPolicy(bounds && policyOfTerms(bounds, principal), policyOfTerms(own, principal));
}

type Terms = Pick<Operator, "addsOnlyBounds" | "bounds" | "gate" | "limits">;

function policyOfTerms({ gate, limits }: Pick<Operator, "gate" | "limits">, principal: Principal): SessionPolicy {
  const { callerApproves, approvalChain, rules, approverTimeoutMs, unattended } = limits;
  const places = gate.placesOf(principal);
  return {
    rules: { allow: textsOf(rules.allow), ask: textsOf(rules.ask), deny: textsOf(rules.deny) },
    home: rules.home,
    callerApproves,
    allowsBypass: gate.allowsBypass(),
    sandbox: gate.sandbox,
    sandboxDomains: [...gate.sandboxDomains],
    mayNest: gate.depth + 1 < gate.maxDepth,
    approvalChain: [...approvalChain],
    approverTimeoutMs,
    limits: timesOf(limits),
    places: places ? [places] : [],
    unattended: { ...unattended },
  };
}

function timesOf(limits: Limits): SessionPolicy["limits"] {
  const { requestDeliveredMs, requestMaxMs, requestUnseenMs, turnMaxMs, inactivityMs, idleProcessMs, stopGraceMs } =
    limits;
  return { requestDeliveredMs, requestMaxMs, requestUnseenMs, turnMaxMs, inactivityMs, idleProcessMs, stopGraceMs };
}

/** Returns the policy of a stored session under these terms: `policy` tightened by the operator's. */
export function policyFor(operator: Terms, { policy, principal }: StoredTerms): SessionPolicy {
  const { addsOnlyBounds, bounds, gate, limits } = operator;
  if (!policy || !addsOnlyBounds) return tighterPolicy(policy, ownPolicy(operator, principal));
  if (!bounds) return policy;
  const own = { ...policyOfTerms({ gate, limits }, principal), allowsBypass: true };
  const most = policyOfTerms(bounds, principal);
  const { limits: times, rules, ...added } = findAdditions(most, own) ?? {};
  // Terms that `bounds` leaves out are each client's own.
  const allow = most.rules.allow.join() === own.rules.allow.join() ? policy.rules.allow : most.rules.allow;
  const ofBounds = {
    ...(rules && { rules: { ...rules, allow } }),
    ...(times && { limits: timesBoundBy(most.limits, own.limits, policy.limits) }),
  };
  return tighterPolicy(policy, applyAdditions(policy, { ...added, ...ofBounds }));
}

type Times = SessionPolicy["limits"];

/** Only a time in `most` that differs from `own` is a bound. */
function timesBoundBy(most: Times, own: Times, begun: Times): Times {
  const isBound = (name: keyof Times) => most[name] !== own[name];
  return {
    requestDeliveredMs: isBound("requestDeliveredMs") ? most.requestDeliveredMs : begun.requestDeliveredMs,
    requestMaxMs: isBound("requestMaxMs") ? most.requestMaxMs : begun.requestMaxMs,
    requestUnseenMs: isBound("requestUnseenMs") ? most.requestUnseenMs : begun.requestUnseenMs,
    turnMaxMs: isBound("turnMaxMs") ? most.turnMaxMs : begun.turnMaxMs,
    inactivityMs: isBound("inactivityMs") ? most.inactivityMs : begun.inactivityMs,
    idleProcessMs: isBound("idleProcessMs") ? most.idleProcessMs : begun.idleProcessMs,
    stopGraceMs: begun.stopGraceMs,
  };
}

/** Returns the session in the form that the runtime checks, with `policyFor` applied. */
export function placedSession(
  operator: Operator,
  { policy, principal, spec }: Pick<SessionRecord, "policy" | "principal" | "spec">,
): PlacedSession & { readonly options: SessionOptions } {
  const { environmentId } = operator;
  return { principal, options: spec, policy: policyFor(operator, { policy, principal }), environmentId };
}

export function limitsUnder({
  callerApproves,
  home,
  approvalChain,
  limits,
  rules,
  approverTimeoutMs,
  unattended,
}: SessionPolicy): Limits {
  const parsed = {
    allow: parseRules(rules.allow, "allow"),
    ask: parseRules(rules.ask, "ask"),
    deny: parseRules(rules.deny, "deny"),
  };
  return { ...limits, callerApproves, approvalChain, approverTimeoutMs, unattended, rules: { ...parsed, home } };
}

/** Terms of this server for all its sessions, whoever began them. */
export interface ServerTerms {
  /** False if turns get no receipts. Default: true. */
  readonly receipts?: boolean;
  /** Returns the profiles that a principal may use, by name. Default: none. */
  readonly profilesOf?: (principal: Principal) => Profiles;
  /** Returns the limits on the use of accounts and on money. Default: `UNLIMITED_USE`. */
  readonly useOf?: (session: Pick<SessionRecord, "principal" | "spec">) => UsePolicy;
}

/** Returns the policy of the session at an owner with the terms of `operator`. */
export function policyAtOwner(
  { receipts = true, useOf, ...operator }: Operator & ServerTerms,
  { policy, principal, spec }: Pick<SessionRecord, "policy" | "principal" | "spec">,
  whileUnattended: WhileUnattended | undefined,
): Policy {
  const here = policyFor(operator, { policy, principal });
  const limits = limitsUnder(here);
  const unattended = whileUnattended && { ...whileUnattended, ...limits.unattended };
  const use = useOf?.({ principal, spec }) ?? UNLIMITED_USE;
  return { ...policyOf(spec, limits, operator.initMs), begun: policy ?? here, here, receipts, unattended, use };
}

/** Returns the gate of this server, no more open than the gate at the start of the session. */
export function gateUnder(operator: Operator, session: StoredTerms): Gate {
  const { callerApproves } = policyFor(operator, session);
  const isBegunWithout = session.policy?.allowsBypass === false;
  // Read at each use, because bypass can be switched while the server runs.
  const allowsBypass = () => policyFor(operator, session).allowsBypass;
  const { bounds, gate } = operator;
  const maxDepth = Math.min(gate.maxDepth, bounds?.gate.maxDepth ?? gate.maxDepth);
  return { ...gate, allowsBypass, isBegunWithout, callerApproves, maxDepth };
}

/** Throws PERMISSION_DENIED if the session began under rules that an older version such as this cannot parse. */
export function checkRules({ policy }: { readonly policy?: SessionPolicy | undefined }): void {
  for (const behavior of ["ask", "deny"] as const) {
    const unread = policy?.rules[behavior].find((text) => !parseRule(text, behavior).ok);
    if (unread === undefined) continue;
    const problem = `The session was started under the rule ${unread.slice(0, 200)}, which this server cannot read`;
    throw new AppError("PERMISSION_DENIED", `${problem}. Continue on the server that started it, or update this one.`);
  }
}

/** Returns each text once, like `tighterPolicy`, so that a session's policy equals the policy of its process. */
function textsOf(rules: readonly Rule[]): string[] {
  return [...new Set(rules.map(({ text }) => text))];
}

function parseRules(texts: readonly string[], behavior: RuleBehavior): Rule[] {
  return texts.flatMap((text) => {
    const parsed = parseRule(text, behavior);
    return parsed.ok ? [parsed.rule] : [];
  });
}

/**
 * Returns the owner's objection to a command, or `undefined`. A command was checked by the server that took it, whose operator
 * may allow more than the owner's.
 */
export function objectionTo(
  command: Command,
  { gate, policy }: { readonly gate: Gate; readonly policy: Policy },
): Refusal | undefined {
  try {
    if (command.kind === "prompt" || command.kind === "verify" || command.kind === "continue") checkRules(command.data);
    checkCommand(command, gate, policy);
    return undefined;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { code: error.code, message: error.message };
  }
}

function checkCommand({ data, kind }: Command, gate: Gate, policy: Policy): void {
  if (kind === "control" && data.request.do === "configure") {
    checkMode(gate, data.request.permissionMode);
    checkModeWithin(data.request.permissionMode, data.decides ? policy.sessionApproves : policy.callerApproves);
  }
  if (kind !== "answer") return;
  const { asCaller, by, decides, decision } = data;
  checkDecision(gate, decision);
  if (by !== CALLER && !asCaller) return;
  const [left] = decisionWithin(decision, decides ? policy.sessionApproves : policy.callerApproves).withheld;
  if (left !== undefined) throw new AppError("PERMISSION_DENIED", left);
}
