import { expect, it } from "vitest";
import { noticesOf, type Recipient } from "../../src/approvers/webhook/notices.ts";
import { initialState } from "../../src/domain/session.ts";
import { walkTo } from "../kit/step/cases.ts";
import { requestOf, T0, Walk } from "../kit/step/walk.ts";

const TOLD: Recipient = { target: "operator:1", nodeId: "n1", isToldOfRequests: true };

it("a request that the webhook is told of is sent by the owner, and by the next owner under the same id", () => {
  const walk = new Walk({ approvalChain: ["caller"] }, walkTo("in a shim"));
  const asked = walk.hear({ type: "asked", request: requestOf("r1") }).last;
  const attached = walk.take({ type: "attached", at: walk.at }).last;
  const noticesBy = (nodeId: string, { events, state }: typeof asked) =>
    noticesOf("s", { events, state, at: T0 }, { ...TOLD, nodeId });
  const [first] = noticesBy("n1", asked);
  expect(first).toMatchObject({ name: "permission.asked", nodeId: "n1", messageId: `msg_s_${String(first?.eventId)}` });
  expect(noticesBy("n2", attached)).toEqual([{ ...first, nodeId: "n2" }]);
  const offered = { ...TOLD, isToldOfRequests: false };
  expect(noticesOf("s", { events: asked.events, state: asked.state, at: T0 }, offered)).toEqual([]);
});

it("a turn that has spent its budget has two messages with ids of their own, for any server with the URL", () => {
  const ended = { turnId: "t1", isError: true, costUsd: 1, durationMs: 1, durationApiMs: 1, numTurns: 1 } as const;
  const whole = { sessionTurns: 1, sessionCostUsd: 1 };
  const data = { ...ended, ...whole, outcome: "failed", errorSubtype: "error_max_budget_usd" } as const;
  const state = { ...initialState(T0), lastEventId: 7 };
  const change = { events: [{ type: "turn.ended" as const, data }], state, at: T0 };
  const about = { target: "operator:1", eventId: 7 };
  expect(noticesOf("s", change, TOLD)).toEqual([
    { ...about, name: "turn.ended", messageId: "msg_s_7" },
    { ...about, name: "budget.reached", messageId: "msg_s_7_budget" },
  ]);
});
