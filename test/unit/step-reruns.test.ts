import { describe, expect, it } from "vitest";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { resultSignal, Walk } from "../kit/step/walk.ts";

const UP: AgentSignal[] = [{ type: "started", pid: 4711, resumed: false }, { type: "ready" }];
const IDLE: AgentSignal = { type: "idle" };
const KILLED: AgentSignal = { type: "exited", code: null, signal: "SIGKILL" };
const CALLED: AgentSignal = { type: "message", message: { type: "assistant" }, toolUseId: "toolu_1" };
const running = () => new Walk().prompt("p1").hear(...UP);
const lastEnd = (walk: Walk) => walk.ended.at(-1);

describe("a turn with `onLost: resume` that was lost", () => {
  const lost = () => new Walk({ onLost: "resume" }, running()).hear(KILLED);

  it("a lost turn continues in a new process as a turn of its own, without a second push of its prompt", () => {
    const walk = lost();
    expect(walk.summary).toBe("process.exited turn.ended(lost) turn.started(prompt) start");
    expect(walk.last.effects).toEqual([{ type: "start", processId: "2", first: false, rerun: true }]);
    expect(walk.last.events.at(-1)).toMatchObject({ data: { promptIds: ["p1"] } });
    expect(walk.last.events.at(-1)?.data).not.toMatchObject({ turnId: "p1" });
    walk.hear({ type: "started", resumed: true }, { type: "ready" }, resultSignal({ promptIds: ["p1"] }), IDLE);
    expect(walk.ended.map(({ outcome }) => outcome)).toEqual(["lost", "done"]);
    expect(walk.status).toBe("idle");
  });

  it("a resumed turn is told to continue if Claude Code has nothing to run again", () => {
    // The turn ended by itself while its server died, so the transcript is complete.
    const walk = lost().hear({ type: "started", resumed: true }, { type: "ready" }).due();
    expect(walk.summary).toBe("prompt.queued prompt.steered push");
    const [{ promptId } = { promptId: "" }] = walk.last.effects.flatMap((each) => (each.type === "push" ? [each] : []));
    walk.hear(resultSignal({ promptIds: [promptId] }), IDLE);
    expect(lastEnd(walk)).toMatchObject({ outcome: "done", turnId: "p1.rerun" });
  });

  it("a resumed turn gets only those prompts again that Claude Code had not written down", () => {
    const steered = running().promptWith("p2", { whenBusy: "steer" });
    const walk = new Walk({ onLost: "resume" }, steered).hear(KILLED);
    const pushed = (missing: string[]) =>
      new Walk(walk.policy, walk)
        .hear({ type: "started", resumed: true, missing })
        .last.effects.flatMap((each) => (each.type === "push" ? [each.promptId] : []));
    expect([pushed(["p1", "p2"]), pushed(["p2"]), pushed([])]).toEqual([["p1", "p2"], ["p2"], []]);
  });

  it("a prompt that is given again after a tool call is marked as partly done", () => {
    const pushed = (walk: Walk) => walk.hear(KILLED, { type: "started", resumed: false }).last.effects;
    const push = { type: "push", promptId: "p1", eventId: 1 };
    expect(pushed(new Walk({ onLost: "resume" }).prompt("p1").hear({ type: "ready" }))).toEqual([push]);
    const atWork = new Walk({ onLost: "resume" }).prompt("p1").hear({ type: "ready" }, CALLED);
    expect(pushed(atWork)).toEqual([{ ...push, partlyDone: true }]);
  });

  it("a prompt that has joined a resumed turn is not given again, whatever the order of signals", () => {
    const walk = lost().hear({ type: "ready" }).promptWith("p2", { whenBusy: "steer" });
    expect(walk.last.effects.map((each) => each.type)).toContain("push");
    walk.hear({ type: "started", resumed: false });
    expect(walk.last.effects).toEqual([{ type: "push", promptId: "p1", eventId: 1 }]);
  });

  it("a resumed turn goes back in the conversation as its prompt required", () => {
    const walk = new Walk({ onLost: "resume" }).promptWith("p1", { resumeAt: "m1" }).hear({ type: "ready" }, KILLED);
    expect(walk.last.effects).toEqual([{ type: "start", processId: "2", first: false, rerun: true, resumeAt: "m1" }]);
  });

  it("a resumed turn is not told to continue if Claude Code runs it again", () => {
    const walk = lost().hear({ type: "started", resumed: true }, { type: "ready" }, { type: "busy", id: "b" });
    expect(walk.due().summary).not.toContain("prompt.queued");
  });

  it("a resumed turn gets its prompt again if Claude Code had written nothing down yet", () => {
    const walk = lost().hear({ type: "started", resumed: false });
    expect(walk.summary).toBe("process.started notice push");
    expect(walk.last.effects).toEqual([{ type: "push", promptId: "p1", eventId: 1 }]);
  });

  it("a turn that is lost twice is not tried a third time", () => {
    const walk = lost().hear({ type: "started", resumed: true }, { type: "ready" }, KILLED);
    expect([walk.summary, walk.status]).toEqual(["process.exited turn.ended(lost)", "error"]);
  });

  it("a turn is also resumed after the death of its owner, once the leftover process has ended", () => {
    const walk = new Walk({ onLost: "resume" }, running());
    walk.take({ type: "recovered", at: walk.at });
    expect(walk.summary).toBe("process.exited turn.ended(lost) turn.started(prompt) end-leftover start");
  });

  it.each([
    ["was interrupted", (walk: Walk) => walk.command("interrupt", { by: "ann" }).hear(KILLED)],
    ["was cancelled", (walk: Walk) => walk.command("cancel", { by: "ann" }).hear(KILLED)],
    ["was shut down", (walk: Walk) => walk.take({ type: "shutdown", at: walk.at })],
    ["never came up", () => new Walk({ onLost: "resume" }).prompt("p1").hear(KILLED)],
  ])("a turn stays ended if it %s", (_, end) => {
    const walk = end(new Walk({ onLost: "resume" }, running()));
    expect([walk.state.turn, walk.ended.length]).toEqual([null, 1]);
  });
});
