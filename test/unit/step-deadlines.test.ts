import { describe, expect, it } from "vitest";
import type { Policy } from "../../src/engine/policy/policy.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { foundFor, refused, RESERVE, USE, used } from "../kit/step/limit-cases.ts";
import { requestOf, POLICY, resultSignal, SECOND, SHELL_TASK, T0, Walk } from "../kit/step/walk.ts";

const UP: AgentSignal[] = [{ type: "started", pid: 4711, resumed: false }, { type: "ready" }];
const IDLE: AgentSignal = { type: "idle" };
const EXIT: AgentSignal = { type: "exited", code: null, signal: "SIGKILL" };
const RESULT = resultSignal({ promptIds: ["p1"] });
const running = (policy: Partial<Policy> = {}) => new Walk(policy).prompt("p1").hear(...UP);
const asking = (policy: Partial<Policy> = {}) => running(policy).hear({ type: "asked", request: requestOf("a1") });
const allow = { decision: { behavior: "allow" }, by: "caller", forSession: false } as const;
const seconds = (walk: Walk) => walk.deadline && (walk.deadline - T0) / SECOND;
const show = (walk: Walk, whole = true) => walk.command("delivered", { requests: [{ requestId: "a1", whole }] });

describe("the time limit of a request", () => {
  it("a request expires at the caller's deadline, counted from its creation, whenever it was seen", () => {
    const walk = asking({ requestTimeoutMs: 20 * SECOND }).later(15);
    expect(seconds(show(walk))).toBe(20);
    expect(walk.due().summary).toBe("permission.answered(deny timeout) answer:deny");
  });

  it("a request expires by default a minute after its first delivery, and not later for a second one", () => {
    const walk = asking().later(100);
    expect(seconds(walk)).toBe(POLICY.requestMaxMs / SECOND);
    expect(seconds(show(walk))).toBe(160);
    show(walk.later(30));
    expect(seconds(walk)).toBe(160);
    expect(walk.due().status).toBe("running");
  });

  it("a request expires at the operator's maximum if it was seen late, or never", () => {
    const seen = asking().later(1795);
    expect(seconds(show(seen))).toBe(1800);
    const unseen = asking().due();
    expect([unseen.at, unseen.summary]).toEqual([
      T0 + POLICY.requestMaxMs,
      "permission.answered(deny timeout) answer:deny",
    ]);
  });

  it("a timeout is reported to the model, and to an answer that comes too late", () => {
    const walk = show(asking()).due();
    const message =
      "This request was denied because it was not answered within 60 s. Continue without it, or say what you need.";
    expect(walk.last.effects).toEqual([{ type: "answer", requestId: "a1", decision: { behavior: "deny", message } }]);
    expect(walk.last.events).toMatchObject([{ data: { requestId: "a1", toolName: "Bash", by: "timeout", message } }]);
    walk.command("answer", { requestId: "a1", ...allow });
    expect(walk.last.effects).toMatchObject([
      { reply: { refusal: { message: "Request a1 was already answered: deny, by timeout." } } },
    ]);
  });

  it("a request expires separately from the other requests of its turn", () => {
    const walk = show(asking())
      .later(10)
      .hear({ type: "asked", request: requestOf("a2") });
    walk.command("delivered", { requests: [{ requestId: "a2", whole: true }] }).due();
    expect([walk.state.requests.map(({ requestId }) => requestId), seconds(walk)]).toEqual([["a2"], 70]);
  });
});

describe("a request that is read page by page", () => {
  const read = (...pages: [from: number, to: number][]) => {
    const walk = asking();
    for (const [from, to] of pages) {
      walk.command("delivered", { requests: [{ requestId: "a1", whole: false, page: { from, to, of: 100 } }] });
    }
    return walk.state.requests[0]?.seenWhole;
  };

  it.each<[string, [number, number][], boolean]>([
    [
      "counts as seen when it is read in order to its end",
      [
        [0, 40],
        [40, 100],
      ],
      true,
    ],
    ["counts as seen when it is read at once", [[0, 100]], true],
    [
      "counts as seen when a page is read twice",
      [
        [0, 40],
        [20, 60],
        [0, 10],
        [60, 100],
      ],
      true,
    ],
    ["does not count as seen without its end", [[0, 99]], false],
    ["does not count as seen without its beginning", [[1, 100]], false],
    [
      "does not count as seen without its middle",
      [
        [0, 40],
        [41, 100],
      ],
      false,
    ],
  ])("a request %s", (_, pages, whole) => {
    expect(read(...pages)).toBe(whole);
  });

  it("a request that was seen whole stays seen whole when one page is read again", () => {
    const walk = show(asking());
    walk.command("delivered", { requests: [{ requestId: "a1", whole: false, page: { from: 0, to: 1, of: 100 } }] });
    expect(walk.state.requests[0]?.seenWhole).toBe(true);
  });
});

describe("the time limits of a turn", () => {
  const limits = { turnMaxMs: 100 * SECOND };

  it("the time limit of a turn pauses while a request is open, however many are open at once", () => {
    const walk = running(limits)
      .later(40)
      .hear({ type: "asked", request: requestOf("a1") });
    walk.later(30).hear({ type: "asked", request: requestOf("a2") });
    walk.later(30).command("answer", { requestId: "a1", ...allow });
    walk.later(200).command("answer", { requestId: "a2", ...allow });
    expect(seconds(walk)).toBe(40 + 260 + 60);
    expect(walk.due().summary).toBe("interrupt");
  });

  it("a turn over its time limit ends as failed by time_limit, whatever Claude Code reports afterwards", () => {
    const walk = running(limits).due().later(1).hear(RESULT, IDLE);
    expect(walk.ended).toMatchObject([
      { outcome: "failed", errorSubtype: "time_limit", category: "limit", code: "TIMEOUT", isError: true },
    ]);
    expect(walk.status).toBe("error");
  });

  it("a turn ends after 10 minutes without activity of Claude Code, not counting waits for decisions", () => {
    const walk = running().later(500).hear({ type: "alive" });
    expect(seconds(walk)).toBe(1100);
    walk.later(100).hear({ type: "asked", request: requestOf("a1") });
    show(walk)
      .later(59)
      .command("answer", { requestId: "a1", ...allow });
    expect(seconds(walk)).toBe(659 + 600);
    expect(walk.due().summary).toBe("interrupt");
    expect(walk.due().summary).toBe("kill");
    expect(walk.hear(EXIT).summary).toBe("process.exited(expected) turn.ended(failed inactivity TIMEOUT)");
    expect(walk.ended).toMatchObject([{ category: "connection" }]);
  });

  it("a turn ends if Claude Code does not come up in time, and has its full time otherwise", () => {
    const late = new Walk().prompt("p1").hear(UP[0]!);
    expect([late.due().at, late.summary]).toEqual([T0 + POLICY.initMs, "kill"]);
    expect(late.deadline).toBeUndefined();
    expect(late.hear(EXIT).summary).toBe("process.exited(expected) turn.ended(failed init_timeout TIMEOUT)");
    expect(late.ended).toMatchObject([{ category: "configuration", isError: true }]);
    const inTime = new Walk()
      .prompt("p1")
      .later(9)
      .hear(...UP);
    expect(seconds(inTime)).toBe(9 + 600);
  });

  it.each([
    ["inactivity", { inactivityMs: 2 * SECOND }],
    ["time_limit", { turnMaxMs: 2 * SECOND }],
  ])("a turn also ends while its prompt waits for an exit, and the prompt is never run: %s", (errorSubtype, policy) => {
    const walk = running(policy).hear(RESULT, IDLE).due().prompt("p2").due().later(10).tick();
    if (walk.state.turn) walk.hear(EXIT);
    expect(walk.ended.at(-1)).toMatchObject({ turnId: "p2", outcome: "failed", errorSubtype, code: "TIMEOUT" });
    expect(walk.state.turn).toBeNull();
  });
});

describe("a turn that is stopped", () => {
  it("an interrupt that runs into the time limit stays an interrupt", () => {
    const walk = running({ turnMaxMs: 3 * SECOND })
      .command("interrupt", { by: "ann" })
      .later(4)
      .tick();
    expect(walk.summary).toBe("");
    expect(walk.due().summary).toBe("kill");
    expect(walk.hear(EXIT).ended).toMatchObject([
      { outcome: "interrupted", message: "The turn was interrupted by ann." },
    ]);
  });

  it("a denial with interrupt after the time limit does not change why the turn ended", () => {
    const walk = running({ turnMaxMs: 3 * SECOND })
      .due()
      .hear({ type: "asked", request: requestOf("a1") });
    const decision = { behavior: "deny", message: "no", interrupt: true } as const;
    walk.command("answer", { requestId: "a1", decision, by: "user", forSession: false }).hear(RESULT, IDLE);
    expect(walk.ended).toMatchObject([{ outcome: "failed", errorSubtype: "time_limit" }]);
  });

  it("Claude Code gets time to obey an interrupt, and is killed once", () => {
    const walk = running().later(1).command("interrupt", { by: "ann" });
    expect(seconds(walk)).toBe(1 + POLICY.stopGraceMs / SECOND);
    expect(walk.due().summary).toBe("kill");
    expect([walk.deadline, walk.later(9999).tick().summary]).toEqual([undefined, ""]);
  });
});

describe("an idle process", () => {
  it("an idle process is closed `idleProcessMs` after the end of its last turn", () => {
    const walk = running().later(7).hear(RESULT, IDLE);
    expect(seconds(walk)).toBe(7 + POLICY.idleProcessMs / SECOND);
    expect([walk.due().summary, walk.state.process.phase, walk.deadline]).toEqual(["stop", "ending", undefined]);
    expect([walk.hear(EXIT).summary, walk.status]).toEqual(["process.exited(expected)", "idle"]);
  });

  it("an idle process is kept while background work runs, and closed `idleProcessMs` after the work", () => {
    const walk = running().hear({ type: "background", tasks: [SHELL_TASK] }, RESULT, IDLE);
    expect(walk.deadline).toBeUndefined();
    walk.later(5000).hear({ type: "background", tasks: [] });
    expect(seconds(walk)).toBe(5000 + POLICY.idleProcessMs / SECOND);
  });

  it("an idle process is closed in time although background work ended with the process before it", () => {
    const walk = running().hear({ type: "background", tasks: [SHELL_TASK] }, RESULT, IDLE);
    walk.later(1).take({ type: "shutdown", at: walk.at }).take({ type: "recovered", at: walk.at }).prompt("p2");
    walk.hear(...UP, resultSignal({ promptIds: ["p2"] }), IDLE);
    expect(seconds(walk)).toBe(1 + POLICY.idleProcessMs / SECOND);
  });
});

describe("looks at a wait", () => {
  const waits = (use: Walk["policy"]["use"]) => new Walk({ onLimit: "wait", use });

  it("a refused turn goes on within a minute once another process reports that the window is free", () => {
    const walk = waits(USE)
      .prompt("p1")
      .hear(...UP, refused("p1"), IDLE)
      .later(60)
      .tick();
    expect(walk.state.waiting?.until).toBeGreaterThan(walk.at);
    expect(used(walk.later(30), "five_hour", 3).later(30).tick().last.effects).toContainEqual(
      expect.objectContaining({ type: "send-again" }),
    );
  });

  it("a turn that is held back starts within a minute once the window or the money is free", () => {
    const full = used(new Walk(), "five_hour", 85);
    const reserved = new Walk({ onLimit: "wait", ...RESERVE }, full).prompt("p1");
    expect(reserved.state.turn?.isHeldBack).toBe(true);
    const free = used(reserved, "five_hour", 84).later(60).tick();
    expect(free.take(foundFor(free, "environment found")).state.turn?.isHeldBack).toBeUndefined();
  });

  it("a turn is held back for as long as all of a window is kept, with looks in between", () => {
    const none = used(new Walk(), "five_hour", 0);
    const walk = new Walk({ onLimit: "wait", use: { ...USE, reserve: { fiveHour: 100 } } }, none).prompt("p1");
    walk.later(2 * 3_600).tick();
    expect(walk.state.turn?.isHeldBack).toBe(true);
    expect(walk.deadline).toBe(walk.at + 4 * USE.marginMs);
  });
});
