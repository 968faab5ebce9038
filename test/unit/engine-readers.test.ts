import { afterEach, beforeEach, expect, it } from "vitest";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import type { Engine } from "../../src/engine/api.ts";
import { type TestNode, twoNodes, type World } from "../kit/step/two-nodes.ts";

/** Effects that a caller without the scope `run` may have. */

let world: World;
let [a, b] = [] as unknown as [TestNode, TestNode];
let reader: Engine;
beforeEach(() => {
  world = twoNodes();
  ({ a, b } = world);
  reader = b.engine.forCaller({ scopes: ["read"] });
});
afterEach(() => world.close());

it("a caller without the scope run does not take over a dead server's session to query Claude Code", async () => {
  const id = await a.openWithRequest();
  a.die();
  world.clock.advance(30_000);
  const refused = { code: "SESSION_BUSY", sessionId: id };
  await expect(reader.control(LOCAL_CALLER, id, { do: "usage" }, "x")).rejects.toMatchObject(refused);
  const output = reader.control(LOCAL_CALLER, id, { do: "task-output", taskId: "1" }, "x");
  await expect(output).rejects.toMatchObject(refused);
  expect(b.runtime.leftovers).toEqual([]);
  expect(await a.story(id)).not.toContain("turn.ended");
});

it("a caller without the scope run starts no Claude Code in an idle session", async () => {
  const id = await a.openIdle();
  await expect(reader.control(LOCAL_CALLER, id, { do: "usage" }, "x")).resolves.toEqual({ did: "usage" });
  await a.engine.drain();
  const refused = { code: "PERMISSION_DENIED" };
  await expect(reader.control(LOCAL_CALLER, id, { do: "usage" }, "x")).rejects.toMatchObject(refused);
  expect(b.runtime.processes).toEqual([]);
});

it("a caller without the scope run changes nothing by any other operation", async () => {
  const id = await a.open();
  const refused = { code: "PERMISSION_DENIED", message: expect.stringContaining("scope run") as string };
  const calls = [
    reader.control(LOCAL_CALLER, id, { do: "rewind", promptId: "p", dryRun: true }, "x"),
    reader.prompt("local", id, { text: "x" }),
    reader.cancel("local", id, { by: "x" }),
    reader.rename("local", id, "x"),
    reader.delete("local", id, "x"),
    reader.drain(),
  ];
  for (const call of calls) await expect(call).rejects.toMatchObject(refused);
});

it("a caller without the scope run waits until the owner has recorded that a request was shown", async () => {
  const id = await a.openWithRequest();
  const requestsOf = async () => (await reader.get("local", id)).state.requests;
  const [request] = await requestsOf();
  expect(request?.deliveredAt).toBeUndefined();
  await reader.delivered("local", id, [{ requestId: request?.requestId ?? "", whole: true }]);
  expect(await requestsOf()).toMatchObject([{ deliveredAt: expect.any(Number) as number }]);
});

it("a question is allowed only with answers, which are not remembered, even if given for the session", async () => {
  const id = await a.open();
  const questions = [{ question: "Which?", options: [{ label: "A" }] }];
  const question = { kind: "question", toolName: "AskUserQuestion", input: { questions } };
  a.runtime.lastProcess(id).ask("q1", question);
  await a.waitForEvent(id, "question.asked");
  const allow = { requestId: "q1", decision: "allow_for_session", by: "caller" } as const;
  await expect(a.engine.answer(LOCAL_CALLER, id, allow)).rejects.toMatchObject({
    code: "INVALID_ARGUMENT",
    message: expect.stringMatching(/^decision: request q1 is a question.*answer_question/),
  });
  const partly = { ...allow, updatedInput: { questions, answers: { "What?": "A" } } };
  await expect(a.engine.answer(LOCAL_CALLER, id, partly)).rejects.toThrow('"What?" is not one of the questions');
  await a.engine.delivered("local", id, [{ requestId: "q1", whole: true }]);
  await a.engine.answer(LOCAL_CALLER, id, { ...allow, updatedInput: { questions, answers: { "Which?": "A" } } });
  expect((await a.engine.get("local", id)).state.remembered ?? []).toEqual([]);
  const answered = await a.waitForEvent(id, "question.answered");
  expect(answered.data).toMatchObject({ behavior: "allow" });
});

it("a caller without the scope run neither answers nor revokes in a session whose server has died", async () => {
  const id = await a.openWithRequest();
  a.die();
  world.clock.advance(30_000);
  const refused = { code: "SESSION_BUSY", sessionId: id };
  const answer = { requestId: "a1", decision: "deny", by: "caller" } as const;
  await expect(reader.revoke("local", id, { by: "x" })).rejects.toMatchObject(refused);
  await expect(reader.answer(LOCAL_CALLER, id, answer)).rejects.toMatchObject(refused);
  expect(b.runtime.leftovers).toEqual([]);
});
