import { describe, expect, it } from "vitest";
import { hasSpoken } from "../../src/domain/session.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { ABORTED, AGENT_TASK, API_ERROR, requestOf, resultSignal, SHELL_TASK, T0, Walk } from "../kit/step/walk.ts";

const UP: AgentSignal[] = [{ type: "started", pid: 4711, resumed: false }, { type: "ready" }];
const IDLE: AgentSignal = { type: "idle" };
const KILLED: AgentSignal = { type: "exited", code: null, signal: "SIGKILL" };
const ENDED: AgentSignal = { type: "exited", code: 0, signal: null };
const running = () => new Walk().prompt("p1").hear(...UP);
const once = (text: string, over = {}) => resultSignal({ text, promptIds: ["p1"], ...over });

describe("a turn", () => {
  it("a turn runs from the prompt to the idle that follows its result, and adds up its usage", () => {
    const walk = new Walk().prompt("p1").later(1);
    expect(walk.last.effects.slice(0, 2)).toEqual([
      { type: "start", processId: "1", first: true, rerun: false },
      { type: "push", promptId: "p1", eventId: 1 },
    ]);
    walk.hear(...UP, { type: "busy", id: "b" }, { type: "reported", model: "opus", permissionMode: "default" });
    walk.hear({ type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" }).later(2);
    walk.hear(once("It is made.", { numTurns: 2, costUsdTotal: 0.25, durationApiMs: 700 }), IDLE);
    expect(walk.story).toBe(
      "prompt.queued turn.started(prompt) process.started session.configured message message turn.ended(done)",
    );
    expect(walk.ended).toEqual([
      {
        turnId: "p1",
        outcome: "done",
        isError: false,
        resultEventId: 6,
        durationMs: 3000,
        durationApiMs: 700,
        numTurns: 2,
        costUsd: 0.25,
        sessionTurns: 2,
        sessionCostUsd: 0.25,
      },
    ]);
    expect(walk.state).toMatchObject({
      lastTurnEventId: 7,
      idleSince: T0 + 3000,
      process: { phase: "live", pid: 4711 },
    });
  });

  it("a turn has the warnings of its results, and is empty only if no result has a text", () => {
    const empty = { text: "", isEmpty: true };
    const ended = (...results: AgentSignal[]) => running().hear(...results, IDLE).ended[0];
    const first = once("", { ...empty, warnings: ["one", "two"] });
    expect(ended(first, resultSignal({ ...empty, warnings: ["two", "three"] }))?.warnings).toEqual([
      expect.stringContaining("no text"),
      "one",
      "two",
      "three",
    ]);
    expect(ended(once("Hello."), resultSignal(empty))).not.toHaveProperty("warnings");
    expect(ended(once("", empty), resultSignal({ text: "Hello." }))).not.toHaveProperty("warnings");
    const failure = { subtype: "hook_stopped", category: "request", message: "A hook." } as const;
    expect(ended(once("", { ...empty, failure, warnings: ["one"] }))).toMatchObject({
      outcome: "failed",
      message: "A hook.",
      warnings: ["one"],
    });
  });

  it("a session has a conversation once Claude was asked, until the conversation is cleared", () => {
    const walk = running();
    const spoken = () => hasSpoken(walk.state);
    walk.hear(once("", { numTurns: 0 }), IDLE);
    expect(spoken()).toBe(false);
    walk.prompt("p2").hear(resultSignal({ promptIds: ["p2"] }), IDLE);
    expect(spoken()).toBe(true);
    walk.hear({ type: "reported", transcriptId: "another" });
    expect(spoken()).toBe(false);
    walk.prompt("p3").hear(resultSignal({ promptIds: ["p3"] }), IDLE);
    expect(spoken()).toBe(true);
  });

  it("a turn waits for an installation, which is logged and does not count towards the time limit of the start", () => {
    const walk = new Walk().prompt("p1").hear({ type: "installing", percent: 0 });
    walk.later(300).hear({ type: "installing", percent: 40 });
    expect(walk.state).toMatchObject({
      process: { phase: "starting", installing: true },
      turn: { clock: { ranMs: 0 } },
    });
    const told = walk.log.flatMap((event) => (event.type === "notice" ? [event.data.message] : []));
    expect(told).toEqual(["Preparing Claude Code, 0 %", "Preparing Claude Code, 40 %"]);
    walk.hear({ type: "installed" }, { type: "admitted" }, ...UP);
    expect(walk.state.process).not.toHaveProperty("installing");
    walk.hear(once("Done."), IDLE);
    expect(walk.ended).toMatchObject([{ outcome: "done" }]);
  });

  it("a turn continues while a background subagent works, makes requests and reports, and ends once", () => {
    const walk = running().hear({ type: "background", tasks: [AGENT_TASK] });
    walk.hear(once("Launched.", { costUsdTotal: 0.1 })).later(1);
    walk.hear({ type: "asked", request: requestOf("a1", { agentId: "t1" }) });
    expect(walk.status).toBe("waiting_permission");
    expect(walk.prompt("p2").summary).toBe("SESSION_BUSY");
    walk.command("answer", { requestId: "a1", decision: { behavior: "allow" }, by: "caller", forSession: false });
    walk.hear({ type: "background", tasks: [] }, { type: "busy", id: "b2" });
    walk.hear(resultSignal({ text: "The agent found it.", costUsdTotal: 0.3, numTurns: 2 }));
    const found = walk.log.length;
    walk.hear(resultSignal({ text: "", costUsdTotal: 0.35, numTurns: 0 }));
    expect(walk.ended).toEqual([]);
    walk.hear(IDLE);
    expect(walk.ended).toEqual([
      expect.objectContaining({ outcome: "done", costUsd: 0.35, numTurns: 3, resultEventId: found }),
    ]);

    walk.prompt("p2").hear(resultSignal({ promptIds: ["p2"], costUsdTotal: 0.45 }), IDLE);
    expect(walk.ended.at(-1)).toMatchObject({ turnId: "p2", numTurns: 1, sessionTurns: 4, sessionCostUsd: 0.45 });
    expect(walk.ended.at(-1)?.costUsd).toBeCloseTo(0.1);
  });

  it("a turn after the end of a background shell is Claude Code's own, and a prompt runs after it", () => {
    const walk = running()
      .hear({ type: "background", tasks: [SHELL_TASK] }, once("It runs."), IDLE)
      .later(5);
    expect([walk.status, walk.state.background]).toEqual(["idle", [SHELL_TASK]]);
    walk.hear({ type: "background", tasks: [] }, { type: "busy", id: "self-1" });
    expect(walk.state.turn).toMatchObject({ id: "self-1", origin: "self", awaiting: [] });
    expect(walk.prompt("p2").summary).toBe("prompt.queued ok");
    walk.hear({ type: "message", message: { type: "system" } }, resultSignal({ text: "It has ended." }));
    expect(walk.hear(IDLE).summary).toBe("turn.ended(done) turn.started(prompt) push");
    walk.hear(resultSignal({ promptIds: ["p2"] }), IDLE);
    expect(walk.ended.map(({ turnId, outcome }) => [turnId, outcome])).toEqual([
      ["p1", "done"],
      ["self-1", "done"],
      ["p2", "done"],
    ]);
  });

  it("a turn does not end at an idle that came before its own prompt was taken up", () => {
    const walk = running().hear(resultSignal({ text: "of the shell before" }), IDLE);
    expect([walk.status, walk.ended]).toEqual(["running", []]);
    walk.hear(once("mine"), IDLE);
    expect(walk.ended).toHaveLength(1);
  });

  it("a turn can end without a result when Claude Code has finished the prompt", () => {
    const walk = running().hear({ type: "prompt-settled", promptId: "p1" }, IDLE);
    expect(walk.ended).toMatchObject([{ outcome: "done", numTurns: 0 }]);
    expect(walk.ended[0]).not.toHaveProperty("resultEventId");
  });

  it.each([
    [{ isError: false }, { outcome: "done", isError: false }],
    [API_ERROR, { outcome: "failed", isError: true, errorSubtype: "api_error", category: "access" }],
    [
      { isError: true, terminalReason: "prompt_too_long" },
      { outcome: "failed", errorSubtype: "prompt_too_long" },
    ],
    [
      { isError: true, subtype: "error_max_turns", category: "limit" },
      { errorSubtype: "error_max_turns", category: "limit" },
    ],
    [ABORTED, { outcome: "interrupted", isError: true, errorSubtype: "interrupted" }],
    [{ ...ABORTED, terminalReason: "aborted_tools" }, { outcome: "interrupted" }],
  ] as const)("a turn ends with the outcome of its last result: %j", (result, expected) => {
    const walk = running().hear(once("first"), resultSignal(result), IDLE);
    expect(walk.ended).toMatchObject([expected]);
    expect(walk.status).toBe(walk.ended[0]?.outcome === "failed" ? "error" : "idle");
  });

  it("a turn costs the increase of Claude Code's count, also after a resume; /clear restarts the count", () => {
    const walk = running()
      .hear(once("a", { costUsdTotal: 0.5 }), IDLE)
      .due()
      .hear({ type: "exited", code: 0, signal: null });
    walk.prompt("p2").hear(...UP, resultSignal({ promptIds: ["p2"], costUsdTotal: 0.75 }), IDLE);
    walk.prompt("p3").hear(resultSignal({ promptIds: ["p3"], numTurns: 0, costUsdTotal: 0 }), IDLE);
    walk.prompt("p4").hear(resultSignal({ promptIds: ["p4"], costUsdTotal: 0.125 }), IDLE);
    expect(walk.ended.map(({ costUsd }) => costUsd)).toEqual([0.5, 0.25, 0, 0.125]);
    expect(walk.state.totals).toEqual({ turns: 3, costUsd: 0.875 });
  });

  it("a turn after a killed process is billed in full, because Claude Code counts from the last saved cost", () => {
    const walk = running().hear(once("a", { costUsdTotal: 5 }), IDLE, KILLED);
    walk.prompt("p2").hear(...UP, resultSignal({ promptIds: ["p2"], costUsdTotal: 5.5 }), IDLE, ENDED);
    walk.prompt("p3").hear(...UP, resultSignal({ promptIds: ["p3"], costUsdTotal: 5.75 }), IDLE);
    expect(walk.ended.map(({ costUsd }) => costUsd)).toEqual([5, 5.5, 0.25]);
  });

  it("a turn is not billed twice if a process failed to start and reported a cost of zero", () => {
    const walk = running().hear(once("a", { costUsdTotal: 5 }), IDLE, ENDED);
    const failed = {
      isError: true,
      subtype: "error_during_execution",
      category: "configuration",
      numTurns: 0,
    } as const;
    walk.prompt("p2").hear(...UP, resultSignal({ ...failed, promptIds: ["p2"], costUsdTotal: 0 }), ENDED);
    walk.prompt("p3").hear(...UP, resultSignal({ promptIds: ["p3"], costUsdTotal: 5.5 }), IDLE);
    expect(walk.ended.map(({ costUsd }) => costUsd)).toEqual([5, 0, 0.5]);
  });

  it("a turn records the model and mode that Claude Code reports, once for each change", () => {
    const walk = running().hear({ type: "reported", model: "opus", permissionMode: "plan" });
    walk.hear(
      { type: "reported", model: "opus", permissionMode: "plan" },
      { type: "reported", permissionMode: "default" },
    );
    expect(walk.log.filter(({ type }) => type === "session.configured").map(({ data }) => data)).toEqual([
      { model: "opus", permissionMode: "plan" },
      { permissionMode: "default" },
    ]);
    expect(walk.state.reported).toEqual({ model: "opus", permissionMode: "default" });
  });
});

describe("a prompt", () => {
  it("a prompt with a known key is answered again and not run again", () => {
    const walk = running().hear(once("a"), IDLE).prompt("p2", "k2");
    const [first] = walk.last.effects.filter(({ type }) => type === "reply");
    walk.hear(resultSignal({ promptIds: ["p2"] }), IDLE).prompt("p3", "k2");
    expect([walk.status, walk.last.effects]).toEqual(["idle", [{ ...first, commandId: "c3" }]]);
  });

  it("a prompt with a known key is refused if its digest differs, as far as the first digest is known", () => {
    const isTaken = (known: { digest?: string }) => {
      const walk = running().promptWith("p2", { idempotencyKey: "k2", whenBusy: "queue", ...known });
      walk.promptWith("p3", { idempotencyKey: "k2", whenBusy: "queue", digest: "d2" });
      return walk.last.effects.some((effect) => effect.type === "reply" && effect.reply.ok);
    };
    expect([{ digest: "d2" }, {}, { digest: "d1" }].map(isTaken)).toEqual([true, true, false]);
  });

  it("a prompt waits for the exit of an ending process, and runs in a new one under the same turn", () => {
    const walk = running().hear(once("a"), IDLE).due();
    expect(walk.summary).toBe("stop");
    walk.prompt("p2");
    expect(walk.summary).toBe("prompt.queued turn.started(prompt) ok");
    walk.hear({ type: "exited", code: 0, signal: null });
    expect(walk.last.effects).toEqual([
      { type: "start", processId: "2", first: false, rerun: false },
      { type: "push", promptId: "p2", eventId: walk.log.findLast(({ type }) => type === "prompt.queued")!.id },
    ]);
    walk.hear(...UP, resultSignal({ promptIds: ["p2"] }), IDLE);
    expect(walk.ended.at(-1)).toMatchObject({ turnId: "p2", outcome: "done" });
  });

  it("a prompt that waits for an exit is not answered with late output of the ending process", () => {
    const walk = running().hear(once("a"), IDLE).due().prompt("p2");
    walk.hear(resultSignal({ text: "of the old one", numTurns: 3 }), { type: "exited", code: 0, signal: null });
    walk.hear(...UP, { type: "prompt-settled", promptId: "p2" }, IDLE);
    expect(walk.ended.at(-1)).toMatchObject({ turnId: "p2", numTurns: 0 });
    expect(walk.ended.at(-1)).not.toHaveProperty("resultEventId");
  });

  it("a held prompt is passed by the next one, and runs when it is released", () => {
    const walk = running().hear(once("a"), IDLE, { type: "busy", id: "self" }).prompt("p2").hear(KILLED).later(9);
    expect([walk.status, walk.state.queue.some(({ held }) => held), walk.state.queue.length]).toEqual([
      "error",
      true,
      1,
    ]);
    walk.prompt("p3").hear(...UP);
    expect(walk.state.turn?.id).toBe("p3");
    expect(walk.hear(resultSignal({ promptIds: ["p3"] }), IDLE).summary).toBe("turn.ended(done)");
    expect(walk.command("queue", { do: "release", by: "caller" }).state.turn?.id).toBe("p2");
  });

  it("a prompt after an interrupt of Claude Code's own turn is not held by the interrupt", () => {
    const walk = running().hear(once("a"), IDLE, { type: "busy", id: "self" }).command("interrupt", { by: "caller" });
    walk.prompt("p2").hear(IDLE);
    expect(walk.summary).toBe("turn.ended(interrupted) turn.started(prompt) push");
  });

  it("a prompt before an interrupt of Claude Code's own turn is held by the interrupt", () => {
    const walk = running().hear(once("a"), IDLE, { type: "busy", id: "self" }).prompt("p2");
    walk.command("interrupt", { by: "caller" }).hear(IDLE);
    expect([walk.summary, walk.state.queue.some(({ held }) => held)]).toEqual(["turn.ended(interrupted)", true]);
  });
});

describe("the size of the state", () => {
  it("the state stays within 16 KiB whatever Claude Code runs in the background", () => {
    const description = "x".repeat(2000);
    const tasks = Array.from({ length: 40 }, (_, n) => ({ id: `t${String(n)}`, type: "local_bash", description }));
    const walk = running().hear({ type: "background", tasks });
    expect(walk.last.events).toMatchObject([{ data: { tasks } }]);
    expect(JSON.stringify(walk.state).length).toBeLessThan(16_384);
  });

  it("the state stays within 16 KiB if the first and the last prompts had keys of the maximum length", () => {
    const walk = new Walk();
    for (let n = 10; n <= 31; n += 1) {
      const promptId = `p${String(n)}`;
      const keyed = { idempotencyKey: promptId + "k".repeat(197), digest: "d".repeat(22) };
      walk.promptWith(promptId, keyed).hear(...UP, resultSignal({ promptIds: [promptId] }), IDLE);
    }
    expect(walk.state.recentKeys.map(({ key }) => key.slice(0, 3))).toEqual([
      "p10",
      ...Array.from({ length: 19 }, (_, n) => `p${String(n + 13)}`),
    ]);
    expect(JSON.stringify(walk.state).length).toBeLessThan(16_384);
  });
});
