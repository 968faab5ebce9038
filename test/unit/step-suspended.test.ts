import { expect, it } from "vitest";
import type { SuspendRequest } from "../../src/domain/control.ts";
import type { SessionState } from "../../src/domain/session.ts";
import { AGENT_TASK, T0, Walk } from "../kit/step/walk.ts";

/** A process closes for another session while its turn waits at a limit, if nothing is lost by that. */

const WAITING = { kind: "usage_limit", window: "five_hour", since: T0 } as const;

function suspended(
  over: Partial<SessionState>,
  request: SuspendRequest = { do: "suspend" },
): [summary: string, phase: string] {
  const walk = new Walk().prompt("p1").hear({ type: "started", resumed: false }, { type: "ready" });
  walk.state = { ...walk.state, ...over };
  walk.command("control", { by: "server", request });
  expect(walk.state.turn).toMatchObject({ id: "p1" });
  return [walk.summary, walk.state.process.phase];
}

it("a turn that waits at a limit gives up its process, also with prompts behind it, and stays", () => {
  expect(suspended({ waiting: WAITING })).toEqual(["ok stop", "ending"]);
  expect(suspended({ waiting: WAITING, queue: [{ promptId: "p2", eventId: 1 }] })).toEqual(["ok stop", "ending"]);
});

it("a turn that runs, has background tasks or may not go on in its mode keeps its process until its end", () => {
  expect(suspended({})).toEqual(["ok", "live"]);
  expect(suspended({ waiting: WAITING, background: [AGENT_TASK] })).toEqual(["ok", "live"]);
  const forbidden = { do: "suspend", reason: "forbidden" } as const;
  expect(suspended({ waiting: WAITING }, forbidden)).toEqual(["notice ok", "live"]);
});
