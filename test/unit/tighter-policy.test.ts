import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BOUNDS, isWithin } from "../../src/domain/approvals/risk.ts";
import { parseRule, type RuleBehavior } from "../../src/domain/approvals/rule.ts";
import { APPROVERS } from "../../src/approvers/approvers.ts";
import type { SessionPolicy } from "../../src/domain/approvals/session-policy.ts";
import { limitsUnder, ownPolicy } from "../../src/engine/policy/operator.ts";
import { judge } from "../../src/engine/policy/rules.ts";
import { matchesPath } from "../../src/engine/policy/rule-path.ts";
import {
  findAdditions,
  isAsStrict,
  PROCESS_PARTS,
  tighterPolicy,
  applyAdditions,
} from "../../src/security/tighter-policy.ts";
import { amount } from "../kit/runner/amount.ts";
import { OPERATOR } from "../kit/sessions/open-gate.ts";
import { requestOf } from "../kit/step/walk.ts";

/** Merges policies of two servers. The result must never be looser than either. */

const RULES = [
  "Bash",
  "Bash(touch *)",
  "Bash(npm test:*)",
  "Read(~/secret/**)",
  "Edit(src/**)",
  "WebFetch",
  "mcp__github",
];
const FOLDERS = ["/srv", "/srv/ours", "/home/ann"];
const HOMES = ["/home/ann", "/home/bob"];

const ms = fc.integer({ min: 0, max: 5_000 });
const some = <T>(all: readonly T[]) => fc.subarray([...all]);
const policies: fc.Arbitrary<SessionPolicy> = fc.record({
  rules: fc.record({ allow: some(RULES), ask: some(RULES), deny: some(RULES) }),
  home: fc.constantFrom(...HOMES),
  callerApproves: fc.constantFrom(...BOUNDS),
  allowsBypass: fc.boolean(),
  sandbox: fc.constantFrom("off", "required"),
  sandboxDomains: some(["a.example", "b.example"]),
  mayNest: fc.boolean(),
  approvalChain: fc.shuffledSubarray(APPROVERS.map(({ name }) => name)),
  approverTimeoutMs: fc.record({ user: ms, console: ms, webhook: ms }),
  limits: fc.record({
    requestDeliveredMs: ms,
    requestMaxMs: ms,
    requestUnseenMs: ms,
    turnMaxMs: ms,
    inactivityMs: ms,
    idleProcessMs: ms,
    stopGraceMs: ms,
  }),
  places: fc.array(
    fc.record({
      allowDirs: some(FOLDERS),
      trustDirs: some(FOLDERS),
      trustsRecord: fc.boolean(),
      spawnWrapper: some(["setpriv"]),
    }),
    { maxLength: 2 },
  ),
  unattended: fc.record({ requests: fc.constantFrom("wait", "deny"), maxUsd: fc.integer({ min: 0, max: 50 }) }),
});

const ASKS = [
  requestOf("r", { toolName: "Bash", input: { command: "touch x" } }),
  requestOf("r", { toolName: "Bash", input: { command: "npm test" } }),
  requestOf("r", { toolName: "Read", input: {}, paths: ["/home/ann/secret/key"] }),
  requestOf("r", { toolName: "Read", input: {}, paths: ["/home/bob/secret/key"] }),
  requestOf("r", { toolName: "Edit", input: {}, paths: ["/repo/src/a.ts"] }),
  requestOf("r", { toolName: "WebFetch", input: { url: "https://example.com" } }),
];

/** Verdicts by strictness: allowed by a rule, `undefined` (decided as usual), always asked, denied. */
const STRICTNESS: readonly (RuleBehavior | undefined)[] = ["allow", undefined, "ask", "deny"];
const verdicts = (policy: SessionPolicy) =>
  ASKS.map((ask) => STRICTNESS.indexOf(judge(ask, limitsUnder(policy).rules, "/repo")?.behavior));

const beforeCaller = ({ approvalChain }: SessionPolicy) =>
  approvalChain.slice(0, Math.max(0, approvalChain.indexOf("caller")));

/** Returns the parts of `policy` that are looser than in `other`. */
function looser(policy: SessionPolicy, other: SessionPolicy): string[] {
  const found: string[] = [];
  const noteIf = (what: string, isLooser: boolean) => void (isLooser && found.push(what));
  const strict = verdicts(other);
  noteIf(
    "rules",
    verdicts(policy).some((strictness, index) => strictness < (strict[index] ?? 0)),
  );
  noteIf("callerApproves", !isWithin(policy.callerApproves, other.callerApproves));
  noteIf("allowsBypass", policy.allowsBypass && !other.allowsBypass);
  const isBound = other.sandbox === "required";
  noteIf("hosts", isBound && policy.sandboxDomains.some((domain) => !other.sandboxDomains.includes(domain)));
  noteIf("sandbox", policy.sandbox === "off" && other.sandbox === "required");
  noteIf("mayNest", policy.mayNest && !other.mayNest);
  noteIf("unattended requests", policy.unattended.requests === "wait" && other.unattended.requests === "deny");
  noteIf("unattended costs", policy.unattended.maxUsd > other.unattended.maxUsd);
  noteIf(
    "approvalChain",
    policy.approvalChain.some((approver) => !other.approvalChain.includes(approver)),
  );
  const asked = beforeCaller(policy);
  const isPassedOver = beforeCaller(other).some(
    (approver) => policy.approvalChain.includes(approver) && !asked.includes(approver),
  );
  noteIf("the caller's place", policy.approvalChain.includes("caller") && isPassedOver);
  for (const approver of ["user", "console", "webhook"] as const)
    noteIf(approver, (policy.approverTimeoutMs[approver] ?? 0) > (other.approverTimeoutMs[approver] ?? 0));
  for (const [name, value] of Object.entries(policy.limits)) {
    noteIf(name, value > other.limits[name as keyof SessionPolicy["limits"]]);
  }
  const kept = policy.places.map((each) => JSON.stringify(each));
  noteIf(
    "places",
    other.places.some((each) => !kept.includes(JSON.stringify(each))),
  );
  return found;
}

describe("the tighter of two policies", () => {
  it("the tighter of two policies is nowhere looser than either, in either order", () => {
    fc.assert(
      fc.property(policies, policies, (one, other) => {
        for (const [stored, present] of [
          [one, other],
          [other, one],
        ] as const) {
          const both = tighterPolicy(stored, present);
          expect(looser(both, stored)).toEqual([]);
          expect(looser(both, present)).toEqual([]);
        }
      }),
      { numRuns: amount(200, 5_000) },
    );
  });

  it("the tighter of a policy and itself is the same policy, with each place once", () => {
    fc.assert(
      fc.property(policies, (policy) => {
        const places = [...new Map(policy.places.map((each) => [JSON.stringify(each), each])).values()];
        expect(tighterPolicy(policy, policy)).toEqual({ ...policy, places });
      }),
    );
  });

  it("the tighter of a server's policy and itself is the same, even with duplicate rules, so a spare fits its session", () => {
    const repeated = fc.array(fc.constantFrom(...RULES));
    const rules = fc.record({ allow: repeated, ask: repeated, deny: repeated });
    fc.assert(
      fc.property(policies, rules, (policy, given) => {
        const own = ownPolicy({ ...OPERATOR, limits: limitsUnder({ ...policy, rules: given }) }, "ann");
        expect(tighterPolicy(own, own)).toEqual(own);
      }),
    );
  });

  it("a session that began before policies were stored gets the present policy", () => {
    fc.assert(
      fc.property(policies, (policy) => {
        expect(tighterPolicy(undefined, policy)).toBe(policy);
      }),
    );
  });

  it("ask and deny rules about a home folder keep their meaning under a server with another home folder", () => {
    const [ann, bob] = HOMES as [string, string];
    const [policy] = fc.sample(policies, 1) as [SessionPolicy];
    const rules = { allow: ["Read(~/a)"], ask: ["Edit(~)"], deny: ["Read(~/secret/**)", "Bash"] };
    const stored = { ...policy, home: ann, rules };
    const both = tighterPolicy(stored, { ...policy, home: bob, rules });
    expect(both.rules).toEqual({
      allow: [],
      ask: ["Edit(//home/ann)", "Edit(~)"],
      deny: ["Read(//home/ann/secret/**)", "Bash", "Read(~/secret/**)"],
    });
    for (const text of both.rules.deny) expect(parseRule(text, "deny").ok).toBe(true);
  });

  it("a character of the home folder is not taken for a wildcard", () => {
    const [policy] = fc.sample(policies, 1) as [SessionPolicy];
    const rules = { allow: [], ask: [], deny: ["Read(~/**)"] };
    const { deny } = tighterPolicy({ ...policy, home: "/home/a*b[c]?", rules }, { ...policy, rules }).rules;
    const parsed = parseRule(String(deny[0]), "deny");
    if (!parsed.ok) throw new Error(parsed.problem);
    const matches = (file: string) => matchesPath(String(parsed.rule.content), file, { cwd: ["/"], home: "/h" }, true);
    expect([matches("/home/a*b[c]?/key"), matches("/home/axb[c]?/key"), matches("/home/a*bcx/key")]).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe("additions of a sender's policy to a session's policy", () => {
  const both = fc.tuple(policies, policies);

  it("additions make a session as strict as both policies, and are empty if the session is as strict already", () => {
    fc.assert(
      fc.property(both, ([other, begun]) => {
        const text = applyAdditions(begun, findAdditions(other, begun));
        expect(looser(text, begun)).toEqual([]);
        expect(looser(text, other)).toEqual([]);
        expect(findAdditions(text, text)).toBeUndefined();
        expect(findAdditions(other, text)).toBeUndefined();
        expect(JSON.parse(JSON.stringify(findAdditions(other, begun) ?? {}))).toEqual(
          findAdditions(other, begun) ?? {},
        );
      }),
    );
  });

  it("a process started without additions is not as strict, unless they concern no process", () => {
    fc.assert(
      fc.property(both, ([other, begun]) => {
        const text = applyAdditions(begun, findAdditions(other, begun));
        expect(isAsStrict(text, begun)).toBe(true);
        expect(isAsStrict(text, other)).toBe(true);
        expect(isAsStrict(begun, text)).toBe(findAdditions(other, begun, PROCESS_PARTS) === undefined);
      }),
    );
  });
});
