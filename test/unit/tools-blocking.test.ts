import { expect, it } from "vitest";

import { readOpenRequests } from "../../src/tools/blocking/outcome.ts";
import { readableSession } from "../../src/tools/readable-session.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";

it("a blocking call that returns for a request has neither events nor the result of an earlier turn", async () => {
  const engine = new FakeEngine();
  const session = engine.add();
  session.startTurn();
  session.finishTurn("r".repeat(3_000));
  session.startTurn();
  for (let at = 0; at < 20; at += 1) session.emitText("e".repeat(300));
  session.openRequest({ input: { command: "c".repeat(1_500) } });
  const [call, deps] = [callOf(), depsOf(engine)];
  const answer = await readOpenRequests(readableSession("s1", call, deps), { cursor: 1, maxBytes: 4_096 }, call, deps);
  expect(answer).toMatchObject({ status: "waiting_permission", actions: [{ input: { command: "c".repeat(1_500) } }] });
  expect(answer).not.toHaveProperty("truncated");
});
