import { describe, expect, it } from "vitest";
import type { SessionState } from "../../src/domain/session.ts";
import { step } from "../../src/engine/step.ts";
import { POLICY, requestOf, SECOND, T0, Walk } from "../support/step/walk.ts";

/** Sessions as a server wrote them that counted no time: their limits follow from the times of day. */

const asked = () =>
  new Walk()
    .prompt("p1")
    .hear({ type: "started", pid: 4711, resumed: false }, { type: "ready" })
    .hear({ type: "asked", request: requestOf("a1") });

/** The state without any counts. */
function uncounted(state: SessionState): SessionState {
  const older = structuredClone(state);
  delete older.idleMs;
  delete older.turn?.clock;
  for (const request of older.requests) delete request.clock;
  return older;
}

function tickAt(state: SessionState, at: number, elapsedMs = 0) {
  return step(state, { type: "tick", at, elapsedMs }, POLICY);
}

describe("a request that an older server left open", () => {
  it("has been open since it was asked, and stays so until the time that was shown", () => {
    const { state } = asked();
    const at = T0 + 100 * SECOND;
    const { state: after } = tickAt(uncounted(state), at);
    const leftMs = state.requests[0]!.expiresAt - at;
    expect(after.requests).toMatchObject([
      { expiresAt: state.requests[0]!.expiresAt, clock: { ageMs: 100 * SECOND, leftMs, approverMs: 100 * SECOND } },
    ]);
  });

  it("is with an approver without a deadline of its own as long as it is open", () => {
    const older = uncounted(asked().state);
    const [request] = older.requests;
    delete request!.approverDeadline;
    delete request!.approverSince;
    const { expiresAt } = request!;
    const { clock } = tickAt(older, T0 + 5 * SECOND).state.requests[0]!;
    expect(clock).toEqual({
      ageMs: 5 * SECOND,
      approverMs: 5 * SECOND,
      leftMs: expiresAt - T0 - 5 * SECOND,
      approverLeftMs: expiresAt - T0 - 5 * SECOND,
    });
  });

  it("is denied at once if its time is over", () => {
    const { state } = asked();
    const { events } = tickAt(uncounted(state), state.requests[0]!.expiresAt + SECOND);
    expect(events).toMatchObject([{ type: "permission.answered", data: { behavior: "deny", by: "timeout" } }]);
  });

  it("is not made older by a clock that was set back", () => {
    const { clock } = tickAt(uncounted(asked().state), T0 - 3600 * SECOND).state.requests[0]!;
    expect(clock).toMatchObject({ ageMs: 0, approverMs: 0 });
  });
});

it("a turn that an older server left is counted from now on", () => {
  const running = new Walk().prompt("p1").hear({ type: "started", pid: 4711, resumed: false }, { type: "ready" });
  const { events, state } = tickAt(uncounted(running.state), T0 + 24 * 3600 * SECOND, 10 * SECOND);
  expect(events).toEqual([]);
  expect(state.turn?.clock).toEqual({ lastedMs: 10 * SECOND, ranMs: 10 * SECOND, silentMs: 10 * SECOND });
});
