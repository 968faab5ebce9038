import { describe, expect, it } from "vitest";
import type { Policy } from "../../src/engine/policy/policy.ts";
import type { AgentSignal } from "../../src/engine/ports.ts";
import { over, refused, USE } from "../kit/step/limit-cases.ts";
import { resultSignal, Walk } from "../kit/step/walk.ts";

/** Tests sessions at a node that may not run them: the turn waits for another node, which goes on. */

const AWAY = "The session runs on node gpu only.";
const idle: AgentSignal = { type: "idle" };
const started: AgentSignal[] = [{ type: "admitted" }, { type: "started", resumed: false, pid: 1 }, { type: "ready" }];

const running = (policy: Partial<Policy> = {}) => new Walk(policy).promptWith("p1", {}).hear(...started);
const done = () => running().hear(resultSignal({ promptIds: ["p1"] }), idle);
class AwayWalk extends Walk {
  override get known() {
    return { ...super.known, away: AWAY };
  }
}
const away = (walk: Walk, policy: Partial<Policy> = {}) => new AwayWalk(policy, walk);
/** Hands the session to an owner on a node that may run it, which has an environment for the process. */
function atItsNode(walk: Walk): Walk {
  const there = new Walk({}, walk).take({ type: "recovered", at: walk.at });
  expect(there.last.effects).toMatchObject([{ type: "find-environment" }]);
  const turnId = there.state.turn?.id ?? "?";
  return there.take({ type: "environment", turnId, environmentId: "e1", at: there.at });
}
const effects = (walk: Walk) => walk.last.effects.map(({ type }) => type);

describe("a prompt at a node that may not run the session", () => {
  it("waits, with the reason in the log, and is given to Claude Code by the session's node", () => {
    const walk = away(new Walk()).promptWith("p1", {});
    expect(walk.state).toMatchObject({
      turn: { isHeldBack: true },
      waiting: { kind: "workspace" },
      process: { phase: "none" },
    });
    expect(walk.state.waiting).not.toHaveProperty("until");
    expect(effects(walk)).toEqual(["reply"]);
    expect(walk.log.at(-1)).toMatchObject({
      type: "notice",
      data: { kind: "waiting", message: expect.stringContaining(AWAY) },
    });
    expect(effects(atItsNode(walk))).toEqual(expect.arrayContaining(["start", "push"]));
  });

  it("fails with the reason if it ends with its client", () => {
    const walk = away(new Walk()).promptWith("p1", { limits: { endWithClient: true } });
    expect(walk.last.effects).toMatchObject([
      { type: "reply", reply: { ok: false, refusal: { message: expect.stringContaining(AWAY) } } },
    ]);
    expect(walk.state.turn).toBeNull();
  });

  it("ends the process of a node that is being drained, for the next node to start its own", () => {
    const walk = away(done()).promptWith("p2", {});
    expect(walk.state).toMatchObject({ process: { phase: "ending" }, waiting: { kind: "workspace" } });
    expect(effects(walk)).toContain("stop");
    walk.hear({ type: "exited", code: 0, signal: null });
    expect(walk.state).toMatchObject({ process: { phase: "none" }, turn: { isHeldBack: true } });
  });

  it("finds no idle process of a node that is being drained, which ends them", () => {
    const walk = away(done()).tick();
    expect(effects(walk)).toEqual(["stop"]);
    expect(walk.state.process).toMatchObject({ phase: "ending" });
  });

  it("can be interrupted, so that nothing waits for a node that never comes back", () => {
    const walk = away(new Walk()).promptWith("p1", {}).command("interrupt", { by: "caller" });
    expect(walk.state).toMatchObject({ turn: null, lastOutcome: "interrupted" });
    expect(walk.state.waiting).toBeUndefined();
  });
});

describe("a turn whose node has died", () => {
  const lost = (policy: Partial<Policy> = {}) => away(running(policy), policy).take({ type: "recovered", at: 0 });

  it("is recorded as lost at a node that may not run the session", () => {
    expect(lost().state).toMatchObject({ turn: null, lastOutcome: "lost", process: { phase: "none" } });
  });

  it("waits with onLost resume, and is run again by a node that may run the session", () => {
    const walk = lost({ onLost: "resume" });
    expect(walk.state).toMatchObject({ turn: { rerun: true, isHeldBack: true }, waiting: { kind: "workspace" } });
    expect(effects(walk)).not.toContain("start");
    const there = atItsNode(walk);
    expect(there.last.effects).toContainEqual(expect.objectContaining({ type: "start", rerun: true }));
    expect(effects(there)).not.toContain("push");
  });

  it("sends a refused request again at the session's node only", () => {
    const waiting = running({ onLimit: "wait", use: USE }).hear(refused("p1"), idle);
    const walk = over(
      away(waiting, { onLimit: "wait", use: USE }).hear({ type: "exited", code: null, signal: "SIGKILL" }),
    );
    expect(walk.state.waiting).toMatchObject({ kind: "workspace" });
    expect(walk.state.turn).not.toHaveProperty("goneOn");
    expect(effects(atItsNode(walk))).toEqual(expect.arrayContaining(["start", "send-again"]));
  });
});
