import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { type SessionStatus, statusOf } from "../../src/domain/session.ts";
import { step } from "../../src/engine/step.ts";
import { inputFor, type InputName, inputsFor, STATE_NAMES, type StateName, walkTo } from "./step-cases.ts";
import { deepFreeze, faultsOf } from "./step-invariants.ts";
import { tellStep } from "./step-walk.ts";

const CANCELS = "turn.ended(cancelled CANCELLED) session.closed(cancelled) stop ok";
const CLOSES = "turn.ended(interrupted) session.closed(closed) stop ok";
const SHUTS_DOWN = "turn.ended(interrupted shutdown) stop";
const LOSES = "process.exited turn.ended(lost)";
const BEGINS = "prompt.queued turn.started(prompt)";
const UNKNOWN_ASK = "PERMISSION_REQUEST_NOT_FOUND";

/** In each state: what comes of an input (events, then effects, a reply as "ok" or its code), and the status then. */
const TABLE: Partial<Record<StateName, [InputName, told: string, SessionStatus][]>> = {
  fresh: [
    ["rest", "ok", "idle"],
    ["prompt", `${BEGINS} start push ok`, "running"],
    ["allow", UNKNOWN_ASK, "idle"],
    ["delivered", "ok", "idle"],
    ["interrupt", "ok", "idle"],
    ["cancel", "session.closed(cancelled) ok", "cancelled"],
    ["close", "session.closed(closed) ok", "closed"],
    ["tick", "", "idle"],
    ["recovered", "", "idle"],
    ["shutdown", "", "idle"],
  ],
  "waiting for a place": [
    ["admitted", "", "running"],
    ["prompt", "SESSION_BUSY", "running"],
    ["interrupt", "kill ok", "running"],
    ["cancel", CANCELS, "cancelled"],
    ["rest", "ok", "running"],
    ["tick", "", "running"],
    ["tick when due", "kill", "running"],
    ["ended", "process.exited turn.ended(failed start_failed)", "error"],
    ["shutdown", SHUTS_DOWN, "idle"],
  ],
  starting: [
    ["admitted", "", "running"],
    ["rest", "ok", "running"],
    ["prompt", "SESSION_BUSY", "running"],
    ["prompt, known key", "ok", "running"],
    ["interrupt", "interrupt ok", "running"],
    ["cancel", CANCELS, "cancelled"],
    ["close", CLOSES, "closed"],
    ["started", "process.started", "running"],
    ["ready", "", "running"],
    ["never came up", "process.exited turn.ended(failed start_failed)", "error"],
    ["tick", "", "running"],
    ["tick when due", "kill", "running"],
    ["recovered", `${LOSES} end-leftover`, "error"],
    ["shutdown", SHUTS_DOWN, "idle"],
  ],
  "idle, shell at work, to rest": [
    ["background ends", "background.changed stop", "idle"],
    ["prompt", `${BEGINS} push ok`, "running"],
  ],
  "result seen, to rest": [["idle", "turn.ended(done) stop", "idle"]],
  "prompt queued behind a turn": [
    ["interrupt of p1", "interrupt ok", "running"],
    ["interrupt of p2", "prompt.dropped(cancelled) ok", "running"],
  ],
  running: [
    ["interrupt of p1", "interrupt ok", "running"],
    ["interrupt of p2", "ok", "running"],
    ["prompt", "SESSION_BUSY", "running"],
    ["prompt, new key", "SESSION_BUSY", "running"],
    ["interrupt", "interrupt ok", "running"],
    ["cancel", CANCELS, "cancelled"],
    ["cancel, with reason", CANCELS, "cancelled"],
    ["close", CLOSES, "closed"],
    ["alive", "", "running"],
    ["busy", "", "running"],
    ["idle", "", "running"],
    ["reported", "session.configured", "running"],
    ["reported nothing", "", "running"],
    ["message", "message", "running"],
    ["result", "message", "running"],
    ["prompt settled", "", "running"],
    ["background begins", "background.changed", "running"],
    ["notice", "notice", "running"],
    ["asked", "permission.asked", "waiting_permission"],
    ["question asked", "question.asked", "waiting_permission"],
    ["withdrawn", "", "running"],
    ["ended", LOSES, "error"],
    ["killed", LOSES, "error"],
    ["tick when due", "interrupt", "running"],
    ["recovered", `${LOSES} end-leftover`, "error"],
    ["shutdown", SHUTS_DOWN, "idle"],
  ],
  asking: [
    ["prompt", "SESSION_BUSY", "waiting_permission"],
    ["allow", "permission.answered(allow caller) answer:allow ok", "running"],
    ["allow for session", "permission.answered(allow user) answer:allow ok", "running"],
    ["allow changed", "INVALID_ARGUMENT", "waiting_permission"],
    ["allow unknown", UNKNOWN_ASK, "waiting_permission"],
    ["deny", "permission.answered(deny caller) answer:deny ok", "running"],
    ["deny and interrupt", "permission.answered(deny caller) answer:deny ok", "running"],
    ["delivered", "ok", "waiting_permission"],
    ["interrupt", "permission.answered(deny cancel) interrupt ok", "running"],
    ["cancel", `permission.answered(deny cancel) ${CANCELS}`, "cancelled"],
    ["close", `permission.answered(deny cancel) ${CLOSES}`, "closed"],
    ["withdrawn", "permission.answered(deny withdrawn)", "running"],
    ["withdrawn, unknown", "", "waiting_permission"],
    ["killed", "process.exited permission.answered(deny withdrawn) turn.ended(lost)", "error"],
    ["tick", "", "waiting_permission"],
    ["tick when due", "permission.answered(deny timeout) answer:deny", "running"],
    ["recovered", "process.exited permission.answered(deny withdrawn) turn.ended(lost) end-leftover", "error"],
    ["shutdown", `permission.answered(deny shutdown) ${SHUTS_DOWN}`, "idle"],
  ],
  "two asks": [
    ["allow", "permission.answered(allow caller) answer:allow ok", "waiting_permission"],
    ["interrupt", "permission.answered(deny cancel) permission.answered(deny cancel) interrupt ok", "running"],
    ["asked", "permission.asked", "waiting_permission"],
  ],
  question: [
    ["allow", "question.answered(allow caller) answer:allow ok", "running"],
    ["withdrawn", "question.answered(deny withdrawn)", "running"],
    ["tick when due", "question.answered(deny timeout) answer:deny", "running"],
  ],
  "shown cut": [["allow changed", "INVALID_ARGUMENT", "waiting_permission"]],
  "shown whole": [["allow changed", "permission.answered(allow caller) answer:allow ok", "running"]],
  "result seen": [
    ["prompt", "SESSION_BUSY", "running"],
    ["idle", "turn.ended(done)", "idle"],
    ["ended", "process.exited turn.ended(done)", "idle"],
    ["result failed", "message", "running"],
  ],
  "agent at work": [
    ["prompt", "SESSION_BUSY", "running"],
    ["asked", "permission.asked", "waiting_permission"],
    ["result of nobody", "message", "running"],
    ["background ends", "background.changed", "running"],
    ["killed", "process.exited background.changed turn.ended(lost)", "error"],
  ],
  "starting, interrupted": [
    ["ready", "", "running"],
    ["tick when due", "kill", "running"],
    ["ended", "process.exited turn.ended(interrupted)", "idle"],
  ],
  interrupted: [
    ["prompt", "SESSION_BUSY", "running"],
    ["interrupt", "ok", "running"],
    ["idle", "", "running"],
    ["result aborted", "message", "running"],
    ["tick", "", "running"],
    ["tick when due", "kill", "running"],
    ["ended", "process.exited turn.ended(interrupted)", "idle"],
    ["cancel", CANCELS, "cancelled"],
  ],
  "interrupted, killed": [
    ["killed", "process.exited(expected) turn.ended(interrupted)", "idle"],
    ["tick", "", "running"],
  ],
  "asking, interrupted": [
    ["withdrawn", "permission.answered(deny withdrawn)", "running"],
    ["tick when due", "kill", "waiting_permission"],
  ],
  "self turn": [
    ["rest", "ok", "running"],
    ["prompt", "prompt.queued ok", "running"],
    ["idle", "turn.ended(done)", "idle"],
    ["interrupt", "interrupt ok", "running"],
    ["killed", LOSES, "error"],
  ],
  "self turn, prompt waits": [
    ["prompt", "prompt.queued ok", "running"],
    ["prompt, known key", "ok", "running"],
    ["idle", "turn.ended(done) turn.started(prompt) push", "running"],
    ["killed", LOSES, "error"],
    ["recovered", `${LOSES} end-leftover`, "error"],
    ["shutdown", SHUTS_DOWN, "idle"],
    ["cancel", CANCELS.replace("session", "prompt.dropped(cancelled) session"), "cancelled"],
    ["close", CLOSES.replace("session", "prompt.dropped(closed) session"), "closed"],
  ],
  "idle, live": [
    ["rest", "ok stop", "idle"],
    ["prompt", `${BEGINS} push ok`, "running"],
    ["prompt, known key", "ok", "idle"],
    ["busy", "turn.started(self)", "running"],
    ["asked", "turn.started(self) permission.asked", "waiting_permission"],
    ["idle", "", "idle"],
    ["result of nobody", "message", "idle"],
    ["interrupt", "ok", "idle"],
    ["cancel", "session.closed(cancelled) stop ok", "cancelled"],
    ["close", "session.closed(closed) stop ok", "closed"],
    ["ended", "process.exited", "idle"],
    ["tick", "", "idle"],
    ["tick when due", "stop", "idle"],
    ["recovered", "process.exited end-leftover", "idle"],
    ["shutdown", "stop", "idle"],
  ],
  "kept nowhere, idle": [["rest", "ok", "idle"]],
  "idle, shell at work": [
    ["rest", "ok", "idle"],
    ["prompt", `${BEGINS} push ok`, "running"],
    ["busy", "turn.started(self)", "running"],
    ["background ends", "background.changed", "idle"],
    ["killed", "process.exited background.changed", "idle"],
    ["tick", "", "idle"],
  ],
  "idle, ending": [
    ["prompt", `${BEGINS} ok`, "running"],
    ["busy", "", "idle"],
    ["asked", "answer:deny", "idle"],
    ["ended", "process.exited(expected)", "idle"],
    ["recovered", "process.exited(expected) end-leftover", "idle"],
    ["shutdown", "stop", "idle"],
    ["tick", "", "idle"],
  ],
  "idle, no process": [
    ["prompt", `${BEGINS} start push ok`, "running"],
    ["tick", "", "idle"],
    ["recovered", "", "idle"],
  ],
  "prompt waits for the exit": [
    ["prompt", "SESSION_BUSY", "running"],
    ["idle", "", "running"],
    ["ended", "process.exited(expected) start push", "running"],
    ["killed", "process.exited(expected) start push", "running"],
    ["interrupt", "turn.ended(interrupted) ok", "idle"],
    ["cancel", CANCELS, "cancelled"],
    ["recovered", "process.exited end-leftover start push", "running"],
    ["shutdown", SHUTS_DOWN, "idle"],
  ],
  "lost, run on": [
    ["prompt", "SESSION_BUSY", "running"],
    ["killed", "process.exited turn.ended(failed start_failed)", "error"],
    ["interrupt", "interrupt ok", "running"],
  ],
  failed: [["prompt", `${BEGINS} push ok`, "running"]],
  "lost, prompt held": [
    ["prompt", `${BEGINS} start push ok`, "running"],
    ["cancel", "prompt.dropped(cancelled) session.closed(cancelled) ok", "cancelled"],
    ["interrupt", "ok", "error"],
    ["tick", "", "error"],
  ],
  "interrupted, prompt held": [
    ["prompt", `${BEGINS} push ok`, "running"],
    ["busy", "turn.started(self)", "running"],
    ["tick", "", "idle"],
  ],
  "shut down": [
    ["prompt", `${BEGINS} ok`, "running"],
    ["ended", "process.exited(expected)", "idle"],
    ["recovered", "process.exited(expected) end-leftover", "idle"],
  ],
  cancelled: [
    ["prompt", "CANCELLED", "cancelled"],
    ["prompt, known key", "CANCELLED", "cancelled"],
    ["allow", UNKNOWN_ASK, "cancelled"],
    ["interrupt", "ok", "cancelled"],
    ["close", "ok", "cancelled"],
    ["message", "", "cancelled"],
    ["asked", "", "cancelled"],
    ["busy", "", "cancelled"],
    ["killed", "process.exited(expected)", "cancelled"],
  ],
  "cancelled, gone": [["prompt", "CANCELLED", "cancelled"]],
  "cancelled, shell at work": [["ended", "process.exited(expected)", "cancelled"]],
  closed: [
    ["rest", "ok", "closed"],
    ["prompt", "CANCELLED", "closed"],
    ["cancel", "ok", "closed"],
    ["tick", "", "closed"],
  ],
};

const ROWS = STATE_NAMES.flatMap((state) => (TABLE[state] ?? []).map((row) => [state, ...row] as const));

describe("step", () => {
  it.each(ROWS)("%s + %s = %s -> %s", (name, input, told, status) => {
    const walk = walkTo(name);
    const done = step(deepFreeze(walk.state), inputFor(walk, input), walk.policy);
    expect([tellStep(done), statusOf(done.state)]).toEqual([told, status]);
  });

  it.each(STATE_NAMES)("keeps every invariant whatever happens: %s", (name) => {
    const walk = walkTo(name);
    const before = deepFreeze(walk.state);
    const broken = inputsFor(walk).flatMap(([input, each]) =>
      faultsOf(before, each, walk.policy, step(before, each, walk.policy)).map((fault) => `${input}: ${fault}`),
    );
    expect(broken).toEqual([]);
  });

  it.each(STATE_NAMES)("takes no notice of a process that is not the present one: %s", (name) => {
    const walk = walkTo(name);
    const old = inputsFor(walk).filter(([input]) => input.endsWith("of an old process"));
    expect(old.length).toBeGreaterThan(10);
    const nothing = { state: walk.state, events: [], effects: [] };
    const heard = old.filter(([, each]) => !isDeepStrictEqual(step(walk.state, each, walk.policy), nothing));
    expect(heard.map(([input]) => input)).toEqual([]);
  });
});
