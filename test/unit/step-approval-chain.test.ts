import { describe, expect, it } from "vitest";
import type { Risk } from "../../src/domain/approvals/risk.ts";
import { parseApprovals } from "../../src/config/approvals/approvals-flag.ts";
import type { PermissionRequest } from "../../src/domain/permission.ts";
import type { Policy } from "../../src/engine/policy/policy.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { requestOf, SECOND, T0, Walk } from "../kit/step/walk.ts";

/** Approver of a request, time limits of approvers, and the right to answer. */

const UP: AgentSignal[] = [{ type: "started", pid: 4711, resumed: false }, { type: "ready" }];
const APPROVAL_CHAIN = ["user", "webhook", "caller"] as const;
const EDIT: Risk = { level: "edits", why: [] };

function asking(policy: Partial<Policy> = {}, over: Partial<PermissionRequest> = {}): Walk {
  const walk = new Walk({ approvalChain: APPROVAL_CHAIN, ...policy }).promptWith("p1", {}).hear(...UP);
  return walk.hear({ type: "asked", request: requestOf("a1", over) });
}

const seconds = (time?: number) => time && (time - T0) / SECOND;
const [ALLOW, DENY] = [{ behavior: "allow" }, { behavior: "deny", message: "no" }] as const;
const answer = (walk: Walk, by: "caller" | "user" | "webhook" | "console", decision: typeof ALLOW | typeof DENY) =>
  walk.command("answer", { requestId: "a1", by, decision, forSession: false });
const open = (walk: Walk) => walk.state.requests[0];

describe("the approval chain", () => {
  it("a request passes from one approver to the next after each time limit, and is denied after the last", () => {
    const walk = asking({ approvalChain: ["user", "webhook"] });
    const times = [300, 900];
    expect([open(walk)?.approverDeadline, open(walk)?.expiresAt].map(seconds)).toEqual(times);
    expect([walk.due().summary, seconds(walk.at)]).toEqual(["request.passed(user webhook time)", 300]);
    expect([walk.due().summary, seconds(walk.at)]).toEqual(["permission.answered(deny timeout) answer:deny", 900]);
  });

  it("the time limit of an approver counts from the delivery to the approver, otherwise from the approver's turn", () => {
    const walk = asking().later(100);
    walk.command("delivered", { requests: [{ requestId: "a1", whole: true, approver: "user" }] });
    expect([open(walk)?.approverDeadline, open(walk)?.expiresAt].map(seconds)).toEqual([400, 1060]);
    walk.due();
    expect([open(walk)?.approver, seconds(open(walk)?.approverDeadline)]).toEqual(["webhook", 1000]);
  });

  it("the time limit of an approver stays the same if someone else has seen the request", () => {
    const walk = asking()
      .later(100)
      .command("delivered", { requests: [{ requestId: "a1", whole: true }] });
    expect([open(walk)?.seenWhole, open(walk)?.deliveredAt, seconds(open(walk)?.approverDeadline)]).toEqual([
      true,
      undefined,
      300,
    ]);
  });

  it("a request that was never seen ends at the operator's limit, whichever approver has it", () => {
    const walk = asking({ requestUnseenMs: 20 * SECOND }).due();
    expect([walk.summary, seconds(walk.at)]).toEqual(["permission.answered(deny timeout) answer:deny", 20]);
  });

  it("the caller's own time limit applies once the caller has the request", () => {
    const walk = asking({ approvalChain: ["user", "caller"], requestTimeoutMs: 5 * SECOND });
    expect(seconds(open(walk)?.expiresAt)).toBe(305);
    walk.due();
    expect([walk.due().summary, seconds(walk.at)]).toEqual(["permission.answered(deny timeout) answer:deny", 305]);
  });

  it("a user whose client shows no forms is skipped, and asked again after a prompt of a client that shows forms", () => {
    const walk = new Walk({ approvalChain: APPROVAL_CHAIN })
      .prompt("p1")
      .hear(...UP)
      .hear({ type: "asked", request: requestOf("a1") });
    expect(open(walk)?.approver).toBe("webhook");
    walk.promptWith("p2", { whenBusy: "queue" }).hear({ type: "asked", request: requestOf("a2") });
    expect(walk.state.requests[1]?.approver).toBe("user");
  });

  it("a user whose client declines unattended is not asked again until the next prompt", () => {
    const walk = asking().hear({ type: "asked", request: requestOf("a2") });
    walk.command("pass", { requestId: "a1", from: "user", why: "unattended" });
    expect(walk.state.requests.map(({ approver }) => approver)).toEqual(["webhook", "webhook"]);
    expect(walk.hear({ type: "asked", request: requestOf("a3") }).state.requests[2]?.approver).toBe("webhook");
    walk.promptWith("p2", { whenBusy: "queue" }).hear({ type: "asked", request: requestOf("a4") });
    expect(walk.state.requests[3]?.approver).toBe("user");
  });

  it("a denial that waits for its reason cannot be allowed or passed on, and holds without a reason", () => {
    const denied = () =>
      asking()
        .later(10)
        .command("delivered", { requests: [{ requestId: "a1", whole: true, approver: "user" }] })
        .command("fill", { requestId: "a1", from: "user", filled: { decision: "deny" }, denial: "no" });
    const told = "permission.answered(deny user) answer:deny";
    for (const by of ["user", "console", "caller"] as const) {
      expect(answer(denied(), by, ALLOW).summary).toBe("PERMISSION_DENIED");
    }
    expect(answer(denied(), "user", DENY).summary).toBe(`${told} ok`);
    expect(denied().command("pass", { requestId: "a1", from: "user", why: "dismissed" }).summary).toBe(`${told} ok`);
    const extended = denied().command("extend", { requestId: "a1" });
    expect([extended.summary, seconds(open(extended)?.expiresAt)]).toEqual(["PERMISSION_DENIED", 130]);
    const left = denied();
    expect(seconds(open(left)?.expiresAt)).toBe(130);
    expect([left.due().summary, seconds(left.at)]).toEqual([told, 130]);
    expect(left.last.events.at(-1)).toMatchObject({ data: { message: "no", by: "user" } });
  });

  it("a program's answer in the caller's name counts once the request is with the caller", () => {
    const allowed = (walk: Walk) =>
      walk.command("answer", { requestId: "a1", by: "webhook", decision: ALLOW, forSession: false, asCaller: true })
        .summary;
    const policy = { approvalChain: ["user", "caller", "webhook"] } as const;
    const early = asking(policy, { risk: EDIT });
    expect([open(early)?.approver, allowed(early)]).toEqual(["user", "PERMISSION_DENIED"]);
    const late = asking(policy, { risk: EDIT }).due();
    expect(open(late)?.approver).toBe("caller");
    expect(allowed(late)).toBe("permission.answered(allow webhook) answer:allow ok");
  });

  it("the console may answer at any time, and is asked only about prompts that were given there", () => {
    const policy: Partial<Policy> = {
      approvalChain: ["user", "caller", "console"],
      approverTimeoutMs: { user: 300 * SECOND, console: 0, webhook: 600 * SECOND },
    };
    const walk = asking(policy);
    expect([open(walk)?.approver, seconds(open(walk)?.expiresAt)]).toEqual(["user", 360]);
    expect(answer(walk, "console", ALLOW).summary).toBe("permission.answered(allow console) answer:allow ok");
    const there = new Walk({ ...policy }).promptWith("p1", {
      limits: { noDialog: true, noCaller: true, atConsole: true },
    });
    there.hear(...UP).hear({ type: "asked", request: requestOf("a1") });
    expect([open(there)?.approver, seconds(open(there)?.expiresAt)]).toEqual(["console", 600]);
    const elsewhere = new Walk({ ...policy }).promptWith("p1", { limits: { noDialog: true, noCaller: true } });
    expect(elsewhere.hear(...UP).hear({ type: "asked", request: requestOf("a1") }).summary).toContain(
      "answered(deny rule)",
    );
  });

  it("the default time limit of the console is at least that of callers", () => {
    const approverTimeoutMs = { user: 300 * SECOND, console: 0, webhook: 600 * SECOND };
    const walk = new Walk({
      approvalChain: ["console"],
      approverTimeoutMs,
      requestDeliveredMs: 3_600 * SECOND,
      requestUnseenMs: 7_200 * SECOND,
    });
    walk.promptWith("p1", { limits: { atConsole: true } }).hear(...UP, { type: "asked", request: requestOf("a1") });
    expect(seconds(open(walk)?.expiresAt)).toBe(3_600);
    expect(parseApprovals(["console", "caller:3600000"]).approverTimeoutMs["console"]).toBe(3_600_000);
    expect(parseApprovals(["console", "caller"]).approverTimeoutMs["console"]).toBe(600_000);
    expect(parseApprovals(["console:5000", "caller:3600000"]).approverTimeoutMs["console"]).toBe(5_000);
    expect(parseApprovals(["console", "caller:3600000"])).toMatchObject({ callerMs: 3_600_000 });
    expect(parseApprovals(["user"])).toMatchObject({ callerMs: 60_000, approvers: ["user"] });
    expect(parseApprovals(["caller"]).approverTimeoutMs).not.toHaveProperty("caller");
    expect(() => parseApprovals(["caller:5"])).toThrow("the time of caller is 5: must be a whole number of ms");
  });

  it("an extension gives the present approver more time, up to a day, and a delivery does not undo it", () => {
    const walk = asking({ approvalChain: ["user", "console"] })
      .later(10)
      .command("extend", { requestId: "a1" });
    const times = () => [open(walk)?.approverDeadline, open(walk)?.expiresAt].map(seconds);
    expect(times()).toEqual([900, 1_500]);
    walk.command("delivered", { requests: [{ requestId: "a1", whole: true, approver: "user" }] });
    expect(times()).toEqual([900, 1_500]);
    walk.due();
    expect([open(walk)?.approver, ...times()]).toEqual(["console", 1_500, 1_500]);
    for (let each = 0; each < 200; each++) walk.command("extend", { requestId: "a1" });
    expect(seconds(open(walk)?.expiresAt)).toBe(900 + 86_400);
    expect(walk.command("extend", { requestId: "?" }).summary).toContain("PERMISSION_REQUEST_NOT_FOUND");
    expect(asking().command("extend", { requestId: "a1" }).summary).toContain("PERMISSION_DENIED");
  });

  it("a request that no approver can answer is denied at once, with the reason", () => {
    const nobody = asking({ approvalChain: [] });
    expect(nobody.summary).toBe("permission.asked permission.answered(deny rule) answer:deny");
    const tooMuch = asking({ approvalChain: ["caller"], callerApproves: "reads" }, { risk: EDIT });
    const message =
      "Bash (edits) is more than a caller may decide here (reads, --caller-approves). Do it in a way that is allowed, or say what you could not do.";
    expect(tooMuch.last.events.at(-1)).toMatchObject({ data: { by: "rule", message } });
    expect(tooMuch.status).toBe("running");
    // A request without `risk` counts as `all`, and is named `all`.
    const unknown = asking({ approvalChain: ["caller"], callerApproves: "edits" });
    const greatest = "Bash (all) is more than a caller may decide here (edits, --caller-approves).";
    expect(unknown.last.events.at(-1)).toMatchObject({
      data: { message: expect.stringContaining(greatest) as string },
    });
    const asked = { kind: "question", toolName: "AskUserQuestion" } as const;
    const question = asking({ approvalChain: ["caller"], callerApproves: "none" }, asked);
    const about = "A question is more than a caller may decide here (none, --caller-approves).";
    expect(question.last.events.at(-1)).toMatchObject({ data: { message: expect.stringContaining(about) as string } });
  });

  it("a caller is asked only within its approval level: by risk, and questions unless the level is none", () => {
    const approverOf = (bound: Policy["callerApproves"], over: Partial<PermissionRequest>) =>
      open(asking({ approvalChain: ["caller"], callerApproves: bound }, over))?.approver;
    expect(approverOf("edits", { risk: EDIT })).toBe("caller");
    expect(approverOf("reads", { risk: EDIT })).toBeUndefined();
    // A request without `risk` counts as `all`.
    expect(approverOf("edits", {})).toBeUndefined();
    expect(approverOf("all", {})).toBe("caller");
    expect(approverOf("reads", { kind: "question" })).toBe("caller");
    expect(approverOf("none", { kind: "question" })).toBeUndefined();
  });
});

describe("an answer in the approval chain", () => {
  it("an answer of a person counts, whichever approver has the request", () => {
    expect(answer(asking(), "webhook", ALLOW).summary).toBe("permission.answered(allow webhook) answer:allow ok");
    const late = asking().due().due();
    expect(open(late)?.approver).toBe("caller");
    expect(answer(late, "user", ALLOW).summary).toBe("permission.answered(allow user) answer:allow ok");
  });

  it("a caller may deny before its turn, and also allow from then on", () => {
    const early = answer(asking(), "caller", ALLOW);
    const message = `The request is with the user until ${new Date(T0 + 300 * SECOND).toISOString()}. Wait with claude_code_check; you may deny it now.`;
    expect(early.last.effects).toMatchObject([{ reply: { refusal: { code: "PERMISSION_DENIED", message } } }]);
    expect(answer(asking(), "caller", DENY).summary).toBe("permission.answered(deny caller) answer:deny ok");
    expect(answer(asking().due().due(), "caller", ALLOW).summary).toContain("allow caller");
  });

  it("a caller never allows more than its approval level", () => {
    const walk = asking({ callerApproves: "reads" }, { risk: EDIT });
    const refused = answer(walk, "caller", ALLOW);
    expect(refused.summary).toBe("PERMISSION_DENIED");
    expect(answer(walk, "caller", DENY).summary).toBe("permission.answered(deny caller) answer:deny ok");
  });

  it("an answer of an approver outside the chain is refused", () => {
    const walk = answer(asking(), "console", DENY);
    const message = "Approvers on this server: user, webhook, caller (--approvals). console is not one of them.";
    expect(walk.last.effects).toMatchObject([{ reply: { refusal: { code: "PERMISSION_DENIED", message } } }]);
  });

  it("a second answer is refused, and the refusal names the first", () => {
    const walk = answer(answer(asking(), "webhook", ALLOW), "user", DENY);
    const message = "Request a1 was already answered: allow, by webhook.";
    expect(walk.last.effects).toMatchObject([
      { reply: { refusal: { code: "PERMISSION_REQUEST_NOT_FOUND", message } } },
    ]);
  });
});
