import { describe, expect, it } from "vitest";
import type { Policy } from "../../src/engine/policy/policy.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { ABORTED, requestOf, resultSignal, SECOND, T0, Walk } from "../kit/step/walk.ts";

/** Sessions without a client, on a server that outlives its clients. */

const HOUR = 3_600 * SECOND;
const UNATTENDED = { requests: "wait", afterMs: 600 * SECOND, maxMs: 4 * HOUR, maxUsd: 10 } as const;
const UP: AgentSignal[] = [{ type: "started", pid: 4711, resumed: false }, { type: "ready" }];
const CALLED: AgentSignal = { type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" };
const [NO_ONE, CALLS, SHOWS] = [
  { caller: false, user: false },
  { caller: true, user: false },
  { caller: true, user: true },
];

const running = (policy: Partial<Policy> = {}) =>
  new Walk({ unattended: UNATTENDED, turnMaxMs: 100 * HOUR, inactivityMs: 100 * HOUR, ...policy })
    .promptWith("p1", {})
    .hear(...UP);
/** Starts a session with an `afterMs` so long that the session never becomes unattended. */
const followed = (policy: Partial<Policy> = {}) =>
  running({ unattended: { ...UNATTENDED, afterMs: 1_000 * HOUR }, ...policy });
const reach = (walk: Walk, now: typeof NO_ONE) => walk.take({ type: "reach", at: walk.at, reach: now });
const asks = (walk: Walk) => walk.hear({ type: "asked", request: requestOf("a1") });
const denying = { unattended: { ...UNATTENDED, requests: "deny" as const } };
const open = (walk: Walk) => walk.state.requests[0];
const seconds = (time?: number) => time && (time - T0) / SECOND;
const notices = (walk: Walk) => walk.log.flatMap((event) => (event.type === "notice" ? [event.data.message] : []));
const show = (walk: Walk, approver: "user" | "caller") =>
  walk.command("delivered", { requests: [{ requestId: "a1", whole: true, approver }] });

describe("a request that no client can show", () => {
  it("a request that no client can show waits, and its time limit counts from the first time it is shown", () => {
    const walk = asks(reach(followed(), NO_ONE));
    expect(walk.summary).toBe("permission.asked notice");
    expect(notices(walk)[0]).toContain("--unattended wait");
    walk.later(3_600).tick();
    expect([walk.summary, open(walk)?.approver]).toEqual(["", "user"]);
    expect(reach(walk, CALLS).summary).toBe("request.passed(user caller unreachable)");
    walk.later(3_600).tick();
    expect(show(walk, "caller").summary).toBe("ok");
    expect(seconds(open(walk)?.expiresAt)).toBe(7_260);
    const decision = { behavior: "allow" } as const;
    const answer = { requestId: "a1", by: "caller", decision, forSession: false } as const;
    expect(walk.later(50).command("answer", answer).summary).toBe("permission.answered(allow caller) answer:allow ok");
  });

  it("a request stays with the user for a client with forms, and goes to the caller if its form is not shown in time", () => {
    const walk = asks(reach(followed(), NO_ONE)).later(3_600);
    expect([reach(walk, SHOWS).summary, open(walk)?.approver]).toEqual(["", "user"]);
    walk.due();
    expect([walk.summary, seconds(walk.at)]).toEqual(["request.passed(user caller time)", 3_900]);
    walk.later(86_400).tick();
    expect(walk.summary).toBe("");
    show(walk, "caller");
    expect([walk.due().summary, open(walk)]).toEqual(["permission.answered(deny timeout) answer:deny", undefined]);
  });

  it("the time of a request stands still again when the last client leaves before the request was shown", () => {
    const walk = reach(asks(reach(followed(), SHOWS)).later(200), NO_ONE)
      .later(3_600)
      .tick();
    expect([walk.log.some(({ type }) => type === "request.passed"), open(walk)?.approver]).toEqual([false, "user"]);
    reach(walk, SHOWS).due();
    expect([walk.summary, seconds(walk.at)]).toEqual(["request.passed(user caller time)", 4_100]);
  });

  it("a request that no client can show has the time that its caller chose, from its creation", () => {
    const walk = asks(reach(followed({ requestTimeoutMs: 5 * SECOND, approvalChain: ["caller"] }), NO_ONE));
    expect([walk.due().summary, seconds(walk.at)]).toEqual(["permission.answered(deny timeout) answer:deny", 5]);
  });

  it("a request goes to the console for the console's full time once a caller is there to follow", () => {
    const walk = asks(reach(followed({ approvalChain: ["user", "console", "caller"] }), NO_ONE)).later(3_600);
    expect(reach(walk, CALLS).summary).toBe("request.passed(user console unreachable)");
    expect([walk.due().summary, seconds(walk.at)]).toEqual(["request.passed(console caller time)", 4_200]);
  });

  it("a request is denied at once if `unattended` says so, also when the last client leaves before it was shown", () => {
    const told = "notice permission.answered(deny rule) answer:deny";
    expect(asks(reach(followed(denying), NO_ONE)).summary).toBe(`permission.asked ${told}`);
    const left = asks(reach(followed(denying), SHOWS)).later(1);
    expect(reach(left, NO_ONE).summary).toBe(told);
    const seen = show(asks(reach(followed(denying), SHOWS)), "user");
    expect(reach(seen, NO_ONE).summary).toBe("");
  });

  it("a request that no client can show goes to a webhook in the approval chain", () => {
    const walk = asks(reach(followed({ ...denying, approvalChain: ["user", "webhook", "caller"] }), NO_ONE));
    expect([walk.summary, open(walk)?.approver]).toEqual(["permission.asked", "webhook"]);
  });
});

describe("a session that no client attends to", () => {
  it("a session becomes unattended after 10 minutes awake, and gets one notice", () => {
    const walk = running().due();
    expect([walk.summary, seconds(walk.at)]).toEqual(["notice", 600]);
    expect(notices(walk)[0]).toContain("4 h of running turns and $10 (--unattended-max-usd)");
    walk.later(60).tick();
    expect(walk.summary).toBe("");
  });

  it("the time until a session is unattended begins anew when a client attends", () => {
    const walk = running().later(500);
    walk.take({ type: "attended", at: walk.at }).due();
    expect(seconds(walk.at)).toBe(1_100);
    walk.later(1).command("attend", {});
    expect(walk.state.attendance).toEqual({ leftMs: 600 * SECOND });
    walk.due();
    expect([walk.summary, seconds(walk.at)]).toEqual(["notice", 1_701]);
  });

  it("an unattended session is stopped at its next tool call after the allowed time, and its queue is held", () => {
    const walk = running().promptWith("p2", { whenBusy: "queue" }).due();
    // The wait for a decision does not count towards `maxMs`.
    asks(walk.later(3_600)).later(7_200);
    walk.command("answer", { requestId: "a1", by: "user", decision: { behavior: "allow" }, forSession: false });
    walk.due();
    expect([walk.summary, seconds(walk.at)]).toEqual(["notice", 600 + 7_200 + 4 * 3_600]);
    expect(walk.state.queue.map(({ held }) => held)).toEqual([true]);
    expect(walk.hear({ type: "message", message: { type: "assistant" } }).summary).toBe("message");
    expect(walk.hear(CALLED).summary).toBe("message interrupt");
    walk.hear(resultSignal({ ...ABORTED, promptIds: ["p1"], text: "", costUsdTotal: 0.1 }), { type: "idle" });
    expect(walk.ended).toMatchObject([{ outcome: "interrupted", errorSubtype: "unattended_limit" }]);
    expect([walk.status, walk.state.queue.length]).toEqual(["idle", 1]);
  });

  it("an unattended session is stopped at its next tool call if its cost since then exceeds the limit", () => {
    const spent = (costUsdTotal: number): AgentSignal => ({ type: "spent", costUsdTotal, atStart: false });
    const walk = running().hear(spent(8)).due();
    expect(walk.hear(spent(17.9), CALLED).summary).toBe("message");
    expect(walk.hear(spent(18)).summary).toBe("notice");
    expect(notices(walk).at(-1)).toContain("--unattended-max-usd");
    expect(walk.hear(CALLED).summary).toBe("message interrupt");
  });

  it("a session over its unattended limit goes on if a client attends before the next tool call", () => {
    const walk = running().due().due();
    walk.take({ type: "attended", at: walk.at });
    expect(walk.hear(CALLED).summary).toBe("message");
  });

  it("a server that ends with its clients sets no limits for unattended work", () => {
    const walk = running({ unattended: undefined }).later(36_000).tick();
    expect([walk.summary, walk.state.attendance]).toEqual(["", undefined]);
  });
});
