import { afterEach, expect, it } from "vitest";
import type { ApproverPort, Offered } from "../../src/approvers/approver.ts";
import { Offers } from "../../src/approvers/offers.ts";
import { initialState } from "../../src/domain/session.ts";
import { walkTo } from "../kit/step/cases.ts";
import { Moments } from "../kit/step/moments.ts";
import { OPTIONS, twoNodes } from "../kit/step/two-nodes.ts";
import { requestOf, T0, Walk } from "../kit/step/walk.ts";

const world = twoNodes();
afterEach(() => world.close());

it("open requests of a session whose owner died are offered to their current approver", async () => {
  const { backend } = world.a;
  const walk = new Walk({ approvalChain: ["webhook"] }, walkTo("in a shim")).hear({
    type: "asked",
    request: requestOf("r1"),
  });
  await backend.leases.heartbeat(30_000);
  await backend.rows.create({ id: "s", principal: "local", spec: OPTIONS, state: initialState(T0), at: T0 });
  const { log: events, state } = walk;
  await backend.log.append((await backend.leases.claim("s"))!, { events, state, at: T0 });
  const offered: Offered[] = [];
  const moments = new Moments();
  const port: ApproverPort = {
    offer: async (request) => {
      offered.push(request);
      moments.ring();
      return Promise.resolve({ is: "withdrawn" });
    },
    withdraw: () => undefined,
  };
  const silent = { error: () => undefined, warn: () => undefined };
  const engine = () => world.a.engine;
  const offers = new Offers({ ports: new Map([["webhook", port]]), store: backend, engine, log: silent });
  const { last } = walk.take({ type: "attached", at: walk.at });
  offers.onAppended("s", { events: last.events, state: last.state, at: T0 });
  await moments.until(() => offered.length > 0);
  expect(offered).toMatchObject([{ sessionId: "s", request: { requestId: "r1" }, open: { approver: "webhook" } }]);
});
