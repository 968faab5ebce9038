import { describe, expect, it } from "vitest";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { ABORTED, AGENT_TASK, requestOf, resultSignal, SHELL_TASK, SHIM, Walk } from "../kit/step/walk.ts";

const UP: AgentSignal[] = [{ type: "started", pid: 4711, resumed: false }, { type: "ready" }];
const IDLE: AgentSignal = { type: "idle" };
const KILLED: AgentSignal = { type: "exited", code: null, signal: "SIGKILL" };
const CALLED: AgentSignal = { type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" };
const running = () => new Walk().prompt("p1").hear(...UP);
const asking = () => running().hear({ type: "asked", request: requestOf("a1") });
const aborted = resultSignal({ ...ABORTED, promptIds: ["p1"], text: "", costUsdTotal: 0.1 });
const lastEnd = (walk: Walk) => walk.ended.at(-1);

describe("a turn that is ended from outside", () => {
  it("an interrupt closes the requests of a turn, waits for Claude Code, and leaves the session usable", () => {
    const walk = asking().command("interrupt", { by: "ann" });
    expect(walk.summary).toBe("permission.answered(deny cancel) interrupt ok");
    // Claude Code withdraws the request as well; the log already has an answer.
    expect(walk.hear({ type: "withdrawn", requestId: "a1" }).summary).toBe("");
    walk.hear(aborted, IDLE);
    expect(lastEnd(walk)).toMatchObject({
      outcome: "interrupted",
      isError: true,
      errorSubtype: "interrupted",
      message: "The turn was interrupted by ann.",
      costUsd: 0.1,
    });
    expect([walk.status, walk.prompt("p2").summary]).toEqual(["idle", "prompt.queued turn.started(prompt) push ok"]);
  });

  it("a denial with interrupt lets Claude Code end the turn, and records who denied", () => {
    const decision = { behavior: "deny", message: "no", interrupt: true } as const;
    const walk = asking().command("answer", { requestId: "a1", decision, by: "user", forSession: false });
    expect(walk.last.effects[0]).toEqual({ type: "answer", requestId: "a1", decision });
    walk.hear(aborted, IDLE);
    expect(lastEnd(walk)).toMatchObject({ outcome: "interrupted", message: "The turn was interrupted by user." });
  });

  it("a process that ignores a denial with interrupt is killed after a while", () => {
    const decision = { behavior: "deny", message: "no", interrupt: true } as const;
    const walk = asking().command("answer", { requestId: "a1", decision, by: "user", forSession: false });
    expect(walk.due().summary).toBe("kill");
  });

  it("a cancel ends the turn at once for every reader, and the session permanently", () => {
    const walk = asking().command("cancel", { by: "ann", reason: "changed my mind" });
    expect(walk.story).toMatch(
      / permission\.answered\(deny cancel\) turn\.ended\(cancelled CANCELLED\) session\.closed\(cancelled\)$/,
    );
    expect(lastEnd(walk)).toMatchObject({ outcome: "cancelled", isError: true, message: "changed my mind" });
    expect([walk.status, walk.state.process.phase]).toEqual(["cancelled", "ending"]);
    walk.hear({ type: "withdrawn", requestId: "a1" }, aborted, IDLE);
    expect(walk.last.events).toEqual([]);
    expect(walk.hear(KILLED).summary).toBe("process.exited(expected)");
    expect([walk.prompt("p2").summary, walk.status]).toEqual(["CANCELLED", "cancelled"]);
  });

  it("closing a session interrupts its turn first", () => {
    const walk = running().command("close", { by: "ann" });
    expect(lastEnd(walk)).toMatchObject({ outcome: "interrupted", message: "The turn was interrupted by ann." });
    expect(walk.status).toBe("closed");
  });

  it("a shutdown records the turn as interrupted before anything is stopped, and the session accepts a reply", () => {
    const walk = asking().later(3);
    walk.take({ type: "shutdown", at: walk.at });
    expect(walk.summary).toBe("permission.answered(deny shutdown) turn.ended(interrupted shutdown) stop");
    expect(lastEnd(walk)?.message).toContain("Reply to the session to go on.");
    // The next owner first ends a leftover process.
    walk.take({ type: "recovered", at: walk.at });
    expect([walk.summary, walk.status]).toEqual(["process.exited(expected) end-leftover", "idle"]);
    expect(walk.prompt("p2").last.effects[0]).toMatchObject({ type: "start", first: false, rerun: false });
  });
});

describe("a turn that Claude Code ends while a subagent of it runs", () => {
  const failed = resultSignal({
    isError: true,
    subtype: "error_max_budget_usd",
    category: "limit",
    promptIds: ["p1"],
    costUsdTotal: 0.1,
  });
  const left: AgentSignal = { type: "idle", agents: ["t1"] };
  const leaving = () => running().hear({ type: "background", tasks: [SHELL_TASK] }, failed, left);

  it("a failed turn is reported once its subagent has ended, with the full cost", () => {
    const walk = leaving();
    expect(walk.last.effects).toEqual([{ type: "stop-tasks", taskIds: ["t1"] }]);
    walk.hear({ type: "spent", costUsdTotal: 0.25, atStart: false }, IDLE);
    expect(lastEnd(walk)).toMatchObject({ outcome: "failed", errorSubtype: "error_max_budget_usd", costUsd: 0.25 });
    expect(lastEnd(walk)).not.toHaveProperty("message");
    walk.prompt("p2").hear(resultSignal({ promptIds: ["p2"], costUsdTotal: 0.3 }), IDLE);
    expect(lastEnd(walk)?.costUsd).toBeCloseTo(0.05);
  });

  it("a subagent that outlives its failed turn by 2 s is ended with the process, and the turn is not lost", () => {
    const walk = leaving().promptWith("p2", { whenBusy: "queue" });
    expect([walk.later(1).tick().summary, walk.later(1).tick().summary]).toEqual(["", "kill"]);
    expect(walk.hear(left, IDLE).summary).toBe("");
    expect(walk.hear(KILLED).summary).toBe(
      "process.exited(expected) background.changed turn.ended(failed error_max_budget_usd) turn.started(prompt) start push",
    );
    expect(lastEnd(walk)?.message).toBe(
      "A subagent did not end with the turn, so Claude Code was closed. The next prompt resumes the session. " +
        "Background work was ended with its process: npm run watch. Start it again if it is still needed.",
    );
  });

  it("a failed turn with a subagent also ends after 2 s at a server that took the session over", () => {
    const started: AgentSignal = { type: "started", pid: 4711, resumed: false, shim: SHIM };
    const walk = new Walk().prompt("p1").hear({ type: "admitted" }, started, { type: "ready" }, failed, left);
    walk.later(1).take({ type: "attached", at: walk.at });
    expect(walk.summary).toBe("notice reattach");
    expect([walk.later(1).tick().summary, walk.later(1).tick().summary]).toEqual(["", "kill"]);
    expect(walk.hear(KILLED).summary).toBe("process.exited(expected) turn.ended(failed error_max_budget_usd)");
  });

  it("a successful turn ends at once although a subagent of it runs", () => {
    expect(running().hear(resultSignal({ promptIds: ["p1"] }), left).summary).toBe("turn.ended(done)");
  });

  it("an interrupted turn ends as interrupted although a subagent of it runs", () => {
    const walk = running().command("interrupt", { by: "ann" }).hear(aborted, left);
    expect(walk.summary).toBe("stop-tasks");
    expect(walk.later(2).tick().summary).toBe("kill");
    walk.hear(KILLED);
    expect(lastEnd(walk)).toMatchObject({ outcome: "interrupted", message: "The turn was interrupted by ann." });
  });
});

it("a turn whose process is killed names the background work that was lost with it", () => {
  const walk = running().hear({ type: "background", tasks: [SHELL_TASK] });
  walk.command("interrupt", { by: "ann" }).due().hear(IDLE);
  expect(lastEnd(walk)).toBeUndefined();
  walk.hear(KILLED);
  expect(lastEnd(walk)?.message).toBe(
    "The turn was interrupted by ann. Background work was ended with its process: npm run watch. Start it again if it is still needed.",
  );
});

describe("a lost turn", () => {
  it("a lost turn reports the state of its process, and accepts a reply at once", () => {
    const walk = running().hear({ type: "message", message: { type: "assistant" }, toolUseId: "toolu_7" }, KILLED);
    expect(lastEnd(walk)).toMatchObject({ outcome: "lost", isError: true, errorSubtype: "lost" });
    expect(lastEnd(walk)?.message).toMatch(/killed by SIGKILL.*toolu_7.*Reply to the session/);
    expect(walk.status).toBe("error");
    expect(walk.prompt("p2").last.effects[0]).toMatchObject({ type: "start", first: false, rerun: false });
  });

  it("a turn is lost with its background subagent although a first result was seen", () => {
    const walk = running().hear({ type: "background", tasks: [AGENT_TASK] }, resultSignal({ promptIds: ["p1"] }));
    expect(walk.hear(KILLED).summary).toBe("process.exited background.changed turn.ended(lost)");
  });

  it("a turn is lost if its process dies during a question, although a result came before", () => {
    const walk = running().hear(
      resultSignal({ promptIds: ["p1"] }),
      { type: "asked", request: requestOf("a1") },
      KILLED,
    );
    expect(walk.summary).toBe("process.exited permission.answered(deny withdrawn) turn.ended(lost)");
  });

  it("the message of a lost turn names no tool call of an earlier turn", () => {
    const walk = running().hear(CALLED);
    walk
      .hear(resultSignal({ promptIds: ["p1"] }), IDLE)
      .prompt("p2")
      .hear(KILLED);
    expect(lastEnd(walk)).toMatchObject({ turnId: "p2", outcome: "lost" });
    expect(lastEnd(walk)?.message).not.toContain("toolu_1");
  });

  it("a turn is reported as lost with its owner in every phase", () => {
    for (const walk of [new Walk().prompt("p1"), running(), asking()]) {
      walk.take({ type: "recovered", at: walk.at });
      expect(lastEnd(walk)).toMatchObject({ outcome: "lost", errorSubtype: "lost" });
      expect(lastEnd(walk)?.message).toContain("The server that ran");
      expect(lastEnd(walk)?.message).not.toContain("code null");
      expect(walk.prompt("p2").last.effects[0]).toMatchObject({ type: "start", first: false, rerun: false });
    }
  });

  it("prompts behind a lost turn are held when the owner dies", () => {
    const idle = running().hear(resultSignal({ promptIds: ["p1"] }), IDLE);
    const walk = idle.hear({ type: "busy", id: "self" }).prompt("p2");
    walk.take({ type: "recovered", at: walk.at });
    expect([walk.state.turn, walk.state.queue.some(({ held }) => held), walk.state.queue.length]).toEqual([
      null,
      true,
      1,
    ]);
  });

  it("a recovery ends the process that the dead owner left before anything else", () => {
    const walk = new Walk().prompt("p1").hear({ type: "started", pid: 4711, startedAt: "77", resumed: false });
    walk.take({ type: "recovered", at: walk.at });
    const leftover = { type: "end-leftover", processId: "1", process: { pid: 4711, startedAt: "77" } };
    expect(walk.last.effects).toEqual([leftover]);
    expect(walk.log.find(({ type }) => type === "process.started")?.data).toMatchObject({ pid: 4711 });
  });
});

describe("a session without persistence", () => {
  const kept = () => new Walk({ ephemeral: true }, running());

  it("a session without persistence ends with its process in the middle of a turn", () => {
    const walk = kept().hear(KILLED);
    expect(lastEnd(walk)).toMatchObject({ outcome: "lost", isError: true });
    expect([walk.status, walk.prompt("p2").summary]).toEqual(["closed", "CANCELLED"]);
  });

  it("a session without persistence ends after a long idle time, together with its process", () => {
    const walk = kept()
      .hear(resultSignal({ promptIds: ["p1"] }), IDLE)
      .due();
    expect([walk.summary, walk.status]).toEqual(["session.closed(expired) stop", "closed"]);
  });
});

describe("a process that never came up", () => {
  it("a turn fails with the error output of a process that never came up, and the next prompt tries again", () => {
    const walk = new Walk().prompt("p1");
    walk.hear({ type: "exited", code: 1, signal: null, error: "bad flag" });
    expect(lastEnd(walk)).toMatchObject({ outcome: "failed", errorSubtype: "start_failed", category: "configuration" });
    expect(lastEnd(walk)?.message).toBe("Claude Code did not start: it exited with code 1. bad flag.");
    expect(walk.prompt("p2").summary).toBe("prompt.queued turn.started(prompt) start push ok");
  });

  it("a session without persistence is closed if its process never came up, and reports the error output", () => {
    const walk = new Walk({ ephemeral: true }).prompt("p1");
    walk.hear({ type: "exited", code: 1, signal: null, error: "bad flag" });
    expect(lastEnd(walk)).toMatchObject({ errorSubtype: "start_failed", message: expect.stringContaining("bad flag") });
    expect([walk.status, walk.prompt("p2").summary]).toEqual(["closed", "CANCELLED"]);
  });
});

describe("an answer", () => {
  const answer = (behavior: "allow" | "deny") => ({
    requestId: "a1",
    decision: behavior === "allow" ? { behavior } : { behavior, message: "no" },
    by: "caller" as const,
    forSession: behavior === "allow",
  });

  it("the first answer is accepted, and the refusal of a second one names the first", () => {
    const walk = asking().command("answer", answer("allow"));
    expect(walk.last.events).toEqual([
      {
        type: "permission.answered",
        data: { requestId: "a1", toolName: "Bash", behavior: "allow", by: "caller", forSession: true },
      },
    ]);
    walk.command("answer", answer("deny"));
    const message = "Request a1 was already answered: allow, by caller.";
    expect(walk.last.effects).toMatchObject([
      { reply: { refusal: { code: "PERMISSION_REQUEST_NOT_FOUND", message } } },
    ]);
  });

  it("answers are remembered for the last twenty requests", () => {
    const walk = running();
    for (let n = 1; n <= 21; n += 1) {
      const requestId = `a${String(n)}`;
      walk.hear({ type: "asked", request: requestOf(requestId) }, { type: "withdrawn", requestId });
    }
    expect(walk.state.answered.map(({ requestId }) => requestId)).toEqual(
      Array.from({ length: 20 }, (_, n) => `a${String(n + 2)}`),
    );
  });
});

describe("a repeated answer", () => {
  const deny = {
    requestId: "a1",
    decision: { behavior: "deny", message: "no" },
    by: "caller",
    forSession: false,
  } as const;

  it("an answer that is sent again under its id takes effect once and is accepted twice", () => {
    const walk = asking();
    const input = {
      type: "command",
      at: walk.at,
      command: { id: "same", principal: "local", kind: "answer", data: deny },
    } as const;
    walk.take(input).take(input);
    expect(walk.last.effects).toMatchObject([{ type: "reply", commandId: "same", reply: { ok: true } }]);
    expect(walk.last.events).toEqual([]);
  });

  it("a repeated answer under another id is refused", () => {
    const walk = asking().command("answer", deny).command("answer", deny);
    expect(walk.last.effects).toMatchObject([
      { reply: { ok: false, refusal: { code: "PERMISSION_REQUEST_NOT_FOUND" } } },
    ]);
  });
});
