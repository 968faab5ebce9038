import { describe, expect, it } from "vitest";
import type { FakeSession } from "../kit/tools/fake-session.ts";
import { emitCall, emitOutcome, startRunningSession } from "../kit/tools/log.ts";
import { check } from "../kit/tools/run.ts";

describe("answers in mode minimal", () => {
  it("an approved call is reported with its outcome, and a call decided just now without its input", async () => {
    const { engine, session } = startRunningSession();
    for (const id of ["u1", "u2"]) {
      emitCall(session, id);
      session.openRequest({ requestId: `r-${id}`, toolUseId: id, input: { command: `run ${id}` } });
    }
    const { nextCursor: cursor } = await check(engine);
    session.state.requests.shift();
    emitOutcome(session, ["u1"]);
    engine.onAnswer = () => void emitOutcome(session, ["u2"]);
    const own = { action: "respond_permission", requestId: "r-u2", decision: "allow", cursor };
    const outcomes = [
      { tool: "Bash", input: { command: "run u1" }, ok: true, output: "out of u1" },
      { tool: "Bash", ok: true, output: "out of u2" },
    ];
    expect((await check(engine, own)).events).toMatchObject(outcomes.map((data) => ({ type: "output", data })));
    const later = (await check(engine, { cursor })).events.map(({ data }) => data);
    const decided = { requestId: "r-u2", decision: "allow", by: "caller" };
    const whole = { tool: "Bash", input: { command: "run u2" }, ok: true, output: "out of u2" };
    expect(later).toEqual([outcomes[0], decided, whole]);
    const compact = await check(engine, { cursor, responseMode: "delta_compact" });
    expect(compact.events.map(({ data }) => data)).toMatchObject([{ toolUseId: "u1" }, decided, { toolUseId: "u2" }]);
  });

  it("text and call are reported as one event, and a result once", async () => {
    const { engine, session } = startRunningSession();
    session.emitText("I look.");
    emitCall(session, "u1");
    emitOutcome(session, ["u1"]);
    session.emitText("It is there.");
    session.finishTurn("It is there.");
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

  const TEXT = "This request was denied because it was not answered within 1 s. Continue without it.";
  const denied = (session: FakeSession, id: string, text = TEXT) => {
    const content = [{ type: "tool_result", tool_use_id: id, content: text, is_error: true }];
    session.emit({ type: "message", data: { message: { type: "user", message: { content } } } });
  };
  const answered = (session: FakeSession, requestId: string, by: "caller" | "rule" | "timeout" | "user") => {
    session.state.requests = [];
    const data = { requestId, toolName: "Bash", behavior: "deny", by, message: TEXT } as const;
    session.emit({ type: "permission.answered", data });
  };

  it.each(["rule", "timeout", "user"] as const)(
    "the reason of a denial is reported once, wherever the answers are divided: %s",
    async (by) => {
      const { engine, session } = startRunningSession();
      emitCall(session, "u1");
      session.openRequest({ requestId: "r1", toolUseId: "u1" });
      answered(session, "r1", by);
      const { nextCursor: cursor } = await check(engine);
      denied(session, "u1");
      session.emitText("Not done.");
      const [all, later] = [await check(engine), await check(engine, { cursor })];
      expect(JSON.stringify(all.events).split(TEXT)).toHaveLength(2);
      expect(all.events.map(({ data }) => data)).toMatchObject([
        { tool: "Bash", input: { command: "run u1" }, ok: false },
        { requestId: "r1", toolName: "Bash" },
        { decision: "deny", by, message: TEXT },
        { text: "Not done." },
      ]);
      expect(later.events.map(({ data }) => data)).toEqual([
        { tool: "Bash", input: { command: "npm test" }, ok: false },
        { text: "Not done." },
      ]);
      // Mode delta_compact reports every message by itself.
      const compact = JSON.stringify((await check(engine, { responseMode: "delta_compact" })).events);
      expect(compact.split(TEXT)).toHaveLength(3);
    },
  );

  it("the reason of a denial by the caller is reported as the output of the call", async () => {
    const { engine, session } = startRunningSession();
    emitCall(session, "u1");
    session.openRequest({ requestId: "r1", toolUseId: "u1" });
    answered(session, "r1", "caller");
    denied(session, "u1");
    const { events } = await check(engine);
    expect(JSON.stringify(events).split(TEXT)).toHaveLength(2);
    expect(events[0]?.data).toMatchObject({ ok: false, output: TEXT });
  });

  it("a denial by Claude Code is reported once, with the beginning and the end of its reason", async () => {
    const { engine, session } = startRunningSession();
    const why = `Permission to use Bash has been denied because Claude Code is in don't ask mode.${" Go on.".repeat(99)}`;
    emitCall(session, "u1");
    const details = { tool_name: "Bash", tool_use_id: "u1" };
    session.emit({ type: "notice", data: { kind: "denial", message: why, details } });
    denied(session, "u1", why);
    const data = (await check(engine)).events.map((event) => event.data);
    const message = expect.stringMatching(/^Permission to use .* don't ask mode\..{20,70} … .*Go on\.$/) as string;
    expect(data).toEqual([
      { tool: "Bash", input: { command: "run u1" }, ok: false },
      { notice: "denial", message },
    ]);
    // Without the notice, the outcome says why.
    const without = await check(engine, { pollOptions: { includeProgressEvents: false } });
    expect(without.events).toMatchObject([
      { data: { ok: false, output: expect.stringContaining("denied") as string } },
    ]);
  });

  it("a denied input is shown only with its request, and a result names the call", async () => {
    const { engine, session } = startRunningSession();
    const input = { file_path: "/a", content: "c".repeat(20_000) };
    const denials = [{ tool_name: "Write", tool_use_id: "u1", tool_input: input }];
    const message = { type: "result", result: "No.", permission_denials: denials };
    const resultEventId = session.emit({ type: "message", data: { message } });
    const endId = session.endTurn({ resultEventId });
    const brief = [{ tool_name: "Write", tool_use_id: "u1", tool_input: { file_path: "/a" }, inputCut: true }];
    for (const responseMode of ["minimal", "delta_compact", "full"]) {
      const { result } = (await check(engine, { responseMode, cursor: endId + 1 })) as unknown as { result: object };
      expect([responseMode, result]).toMatchObject([responseMode, { permissionDenials: brief }]);
    }
    const whole = (await check(engine, { eventId: endId, maxBytes: 65_536 })) as unknown as { content: string };
    expect(JSON.parse(whole.content)).toMatchObject({ permissionDenials: denials });
  });

  it.each(["minimal", "delta_compact"])(
    "an installation and a series of retries are reported in one line each, the latest: %s",
    async (responseMode) => {
      const { engine, session } = startRunningSession();
      const waiting = (percent: number) => {
        session.emit({
          type: "notice",
          data: { kind: "waiting", message: `Preparing Claude Code, ${String(percent)} %` },
        });
      };
      for (let percent = 0; percent <= 100; percent += 10) waiting(percent);
      const more = [
        "All slots are in use.",
        "overloaded: retry 1 of 10 in 0.5 s",
        "overloaded: retry 2 of 10 in 1.2 s",
      ];
      for (const message of more) session.emit({ type: "notice", data: { kind: "retry", message } });
      session.emitText("I begin.");
      const shown = await check(engine, { responseMode });
      expect(shown.events.map(({ data }) => ("message" in data ? data.message : data.text))).toEqual([
        "Preparing Claude Code, 100 %",
        ...more.filter((_, index) => index !== 1),
        "I begin.",
      ]);
      // A notice after the answer is news.
      waiting(5);
      expect((await check(engine, { responseMode, cursor: shown.nextCursor })).events).toHaveLength(1);
      expect(
        (await check(engine, { responseMode: "full" })).events.filter(({ type }) => type === "progress"),
      ).toHaveLength(15);
    },
  );

  it.each(["minimal", "delta_compact"])(
    "each of two denials that differ in a number is reported: %s",
    async (responseMode) => {
      const { engine, session } = startRunningSession();
      const denials = [1, 2].map((n) => `Permission to read /a/${String(n)}.txt has been denied.`);
      for (const message of denials) session.emit({ type: "notice", data: { kind: "denial", message } });
      const { events } = await check(engine, { responseMode });
      expect(events).toMatchObject(denials.map((message) => ({ data: { message } })));
    },
  );

  it("a cut result says where the whole result can be read", async () => {
    const { engine, session } = startRunningSession();
    session.finishTurn("r".repeat(5_000));
    const answer = await check(engine, { maxBytes: 2_048 });
    expect(answer).toMatchObject({ truncatedFields: ["result"], resultEventId: 3, events: [] });
    const page = await check(engine, { eventId: 3 });
    expect(page).toMatchObject({ content: expect.stringContaining("r".repeat(5_000)) });
  });

  it("an open request is shown in full as long as the answer has room, whatever else there is to report", async () => {
    const { engine, session } = startRunningSession();
    for (let line = 0; line < 30; line += 1) session.emitText("x".repeat(200));
    const inputs = [9_000, 300].map((size) => ({ file_path: "/a", content: "c".repeat(size) }));
    for (const [index, input] of inputs.entries()) {
      session.openRequest({ requestId: `r${String(index)}`, toolUseId: `u${String(index)}`, toolName: "Write", input });
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
