import { describe, expect, it } from "vitest";
import { call, outcome, running } from "../support/tools/log.ts";
import { check } from "../support/tools/run.ts";

describe("in mode minimal, an answer", () => {
  it("contains the outcome of an approved call with the call, and the one just decided without its input", async () => {
    const { engine, session } = running();
    for (const id of ["u1", "u2"]) {
      call(session, id);
      session.requests({ requestId: `r-${id}`, toolUseId: id, input: { command: `run ${id}` } });
    }
    const { nextCursor: cursor } = await check(engine);
    session.state.requests.shift();
    outcome(session, ["u1"]);
    engine.onAnswer = () => void outcome(session, ["u2"]);
    const own = { action: "respond_permission", requestId: "r-u2", decision: "allow", cursor };
    const told = [
      { tool: "Bash", input: { command: "run u1" }, ok: true, output: "out of u1" },
      { tool: "Bash", ok: true, output: "out of u2" },
    ];
    expect((await check(engine, own)).events).toMatchObject(told.map((data) => ({ type: "output", data })));
    const later = (await check(engine, { cursor })).events.map(({ data }) => data);
    const decided = { requestId: "r-u2", decision: "allow", by: "caller" };
    const whole = { tool: "Bash", input: { command: "run u2" }, ok: true, output: "out of u2" };
    expect(later).toEqual([told[0], decided, whole]);
    const compact = await check(engine, { cursor, responseMode: "delta_compact" });
    expect(compact.events.map(({ data }) => data)).toMatchObject([{ toolUseId: "u1" }, decided, { toolUseId: "u2" }]);
  });

  it("contains text and call as one event, and a result once", async () => {
    const { engine, session } = running();
    session.says("I look.");
    call(session, "u1");
    outcome(session, ["u1"]);
    session.says("It is there.");
    session.ends("It is there.");
    const answer = await check(engine);
    expect(answer.events).toEqual([
      {
        id: 2,
        type: "output",
        data: { text: "I look.", tool: "Bash", input: { command: "run u1" }, ok: true, output: "out of u1" },
      },
    ]);
    expect(Object.keys(answer)).toEqual(["status", "events", "nextCursor", "result"]);
    const again = await check(engine, { responseMode: "delta_compact" });
    expect(again.events.map(({ type }) => type)).toEqual(["output", "output", "progress", "output", "result"]);
  });

  it("says where a cut result is complete", async () => {
    const { engine, session } = running();
    session.ends("r".repeat(5_000));
    const answer = await check(engine, { maxBytes: 2_048 });
    expect(answer).toMatchObject({ truncatedFields: ["result"], resultEventId: 3, events: [] });
    const page = await check(engine, { eventId: 3 });
    expect(page).toMatchObject({ content: expect.stringContaining("r".repeat(5_000)) });
  });

  it("shows an open request in full as long as it fits into the answer, whatever else there is to report", async () => {
    const { engine, session } = running();
    for (let line = 0; line < 30; line += 1) session.says("x".repeat(200));
    const inputs = [9_000, 300].map((size) => ({ file_path: "/a", content: "c".repeat(size) }));
    for (const [index, input] of inputs.entries()) {
      session.requests({ requestId: `r${String(index)}`, toolUseId: `u${String(index)}`, toolName: "Write", input });
    }
    for (const responseMode of ["minimal", "delta_compact"]) {
      const answer = await check(engine, { maxBytes: 11_000, responseMode });
      expect(answer.actions).toMatchObject(inputs.map((input) => ({ input })));
      expect(answer.truncatedFields).toEqual(["events"]);
      expect(answer.events.length).toBeGreaterThan(0);
    }
    const tight = await check(engine, { maxBytes: 4_096 });
    expect(tight.actions).toMatchObject([{ inputTruncated: true, inputEventId: 32 }, { input: inputs[1] }]);
  });
});
