import { describe, expect, it } from "vitest";
import type { Receipt } from "../../src/domain/receipt.ts";
import { jsonBytes } from "../../src/view/size.ts";
import { CHANGED, receiptOf, RED } from "../kit/tools/evidence.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import type { FakeSession } from "../kit/tools/fake-session.ts";
import { check, run, runForAnswer, runTool, runWithSensitiveDetails, tools } from "../kit/tools/run.ts";

/** Receipts and verifications in the answers of all tools, from a log written by hand. */

const BRIEF = {
  status: "failed",
  attempts: 2,
  of: 2,
  commands: [
    { command: "npm run lint", exit: 0, ms: 20 },
    { command: "npm test", exit: 1, ms: 30, tail: "1 failed" },
  ],
};

/** Plays a turn whose end names a receipt and a verification. */
function play(session: FakeSession, number: number, receipt: Receipt = receiptOf(number)): void {
  const turnId = `t${String(number)}`;
  session.emit({ type: "prompt.queued", data: { promptId: turnId, text: "Go." } });
  session.emit({ type: "turn.started", data: { turnId, origin: "prompt", promptIds: [turnId, "p"] } });
  const verificationEventId = session.emit({ type: "verification.ended", data: { turnId, verification: RED } });
  const after = { folders: [] };
  const receiptEventId = session.emit({ type: "turn.receipt", data: { turnId, receipt, after } });
  session.finishTurn(`Done ${String(number)}.`, {
    turnId,
    verificationEventId,
    receiptEventId,
  });
}

const SHORT = { turn: 1, by: "tree", complete: true };

function played(): FakeEngine {
  const engine = new FakeEngine();
  play(engine.add("s1"), 1);
  return engine;
}

function playing(): FakeEngine {
  const engine = new FakeEngine();
  engine.onPrompt = (session) => play(session, 1);
  return engine;
}

const call = async (engine: FakeEngine, name: string, args: object) =>
  (await runTool(tools.get(name)!, args, callOf(), depsOf(engine))).structured as Record<string, never>;

describe("the result of a turn", () => {
  it("a poll has the receipt, and the output of red commands only", async () => {
    const answer = await check(played());
    expect(answer).toMatchObject({ result: { result: "Done 1.", receipt: SHORT } });
    expect((answer as unknown as { result: object }).result).toMatchObject({ verification: BRIEF });
    expect(JSON.stringify(answer)).not.toContain("all is well");
  });

  it("a poll in mode full has the whole verification, and shows the receipt once", async () => {
    const answer = await check(played(), { responseMode: "full" });
    expect(answer).toMatchObject({ result: { receipt: SHORT, verification: RED } });
    expect(JSON.stringify(answer).match(/"by":"tree"/g)).toHaveLength(1);
  });

  it("the event of the end has receipt and verification", async () => {
    const engine = played();
    const { lastTurnEventId } = engine.sessions.get("s1")!.state;
    const { content } = (await check(engine, { eventId: lastTurnEventId! })) as unknown as { content: string };
    expect(JSON.parse(content)).toMatchObject({ receipt: SHORT, verification: RED });
  });

  it("the receipt stays in an answer that is cut", async () => {
    const engine = new FakeEngine();
    const session = engine.add("s1");
    play(session, 1);
    session.events.splice(4, 1, {
      ...session.events[4]!,
      type: "message",
      data: { message: { type: "result", result: "x".repeat(20_000), permission_denials: [{ tool_name: "Bash" }] } },
    });
    const answer = await check(engine, { maxBytes: 2_048 });
    expect(jsonBytes(answer)).toBeLessThanOrEqual(2_048);
    expect(answer).toMatchObject({ truncated: true, result: { receipt: SHORT, verification: { status: "failed" } } });
  });

  it.each([
    ["claude_code", { prompt: "Go.", cwd: "/x", waitMs: 1_000 }, "result"],
    ["claude_code_query", { prompt: "Go.", cwd: "/x" }, undefined],
    ["claude_direct_query", { prompt: "Go.", cwd: "/x" }, "metadata"],
  ])("the answer of %s has receipt and verification", async (name, args, place) => {
    const answer = await call(playing(), name, args);
    expect(place === undefined ? answer : answer[place]).toMatchObject({ receipt: SHORT, verification: BRIEF });
  });

  it("the answers of claude_code_reply and claude_chat_query have receipt and verification", async () => {
    for (const [name, place] of [
      ["claude_code_reply", "result"],
      ["claude_chat_query", "metadata"],
    ] as const) {
      const engine = playing();
      engine.add("s1");
      const answer = await call(engine, name, {
        sessionId: "s1",
        prompt: "Go.",
        ...(place === "result" && { waitMs: 1_000 }),
      });
      expect(answer[place]).toMatchObject({ receipt: SHORT, verification: BRIEF });
    }
  });

  it("a turn without a receipt has no such field", async () => {
    const engine = new FakeEngine();
    engine.add("s1").finishTurn("Done.");
    const answer = await check(engine);
    expect(answer).toMatchObject({ result: { result: "Done." } });
    expect(JSON.stringify(answer)).not.toMatch(/receipt|verification/);
  });

  it("get shows the last receipt among sensitive details only", async () => {
    const args = { action: "get", sessionId: "s1" };
    expect(JSON.stringify(await run(played(), "_session", args))).not.toMatch(/receipt|verification/);
    const { structured } = await runWithSensitiveDetails(played(), { ...args, includeSensitive: true });
    expect(structured).toMatchObject({ sessions: [{ receipt: SHORT, verification: BRIEF }] });
  });
});

describe("action receipt", () => {
  const receipt = async (engine: FakeEngine, args: object = {}) =>
    (await runForAnswer(engine, "_session", { action: "receipt", sessionId: "s1", ...args })) as unknown as {
      receipt: Partial<Receipt>;
      nextPageToken?: string;
    };

  it("the whole receipt of a turn is found by number, by default the last", async () => {
    const engine = new FakeEngine();
    const session = engine.add("s1");
    for (const number of [1, 2, 3]) play(session, number);
    expect((await receipt(engine)).receipt).toMatchObject({ turn: 3, files: [CHANGED] });
    expect((await receipt(engine, { turn: 2 })).receipt).toMatchObject({ turn: 2, commands: [{ eventId: 3 }] });
    const { text } = await run(engine, "_session", { action: "receipt", sessionId: "s1", turn: 4 });
    expect(text).toContain("turn 4 has not ended");
    session.state.turnCount = 4;
    const missing = await run(engine, "_session", { action: "receipt", sessionId: "s1", turn: 9 });
    expect(missing.text).toContain("there is no turn 9: the session has had 4 turns");
  });

  it("a large receipt comes in pages within the size of an answer, without loss", async () => {
    const engine = new FakeEngine();
    const files = Array.from({ length: 900 }, (_, index) => ({
      ...CHANGED,
      path: `src/${"folder/".repeat(12)}${String(index)}.ts`,
    }));
    play(engine.add("s1"), 1, receiptOf(1, { files }));
    const read: string[] = [];
    let page = await receipt(engine);
    for (let pages = 1; ; pages += 1) {
      expect(jsonBytes(page)).toBeLessThanOrEqual(32_768);
      read.push(...(page.receipt.files ?? []).map(({ path }) => path));
      if (page.nextPageToken === undefined) break;
      expect(pages).toBeLessThan(10);
      page = await receipt(engine, { pageToken: page.nextPageToken });
    }
    expect(read).toEqual(files.map(({ path }) => path));
    expect(page.receipt.commands).toHaveLength(1);
    const { text } = await run(engine, "_session", { action: "receipt", sessionId: "s1", pageToken: "x" });
    expect(text).toContain("pageToken: is not valid");
  });

  it("a turn that ended at once has a receipt from the log, which says so", async () => {
    const engine = new FakeEngine();
    const session = engine.add("s1");
    play(session, 1);
    session.startTurn();
    session.endTurn({ outcome: "cancelled", turnId: "t1" });
    const made = {
      turn: 2,
      by: "tools",
      complete: false,
      notSeen: [expect.stringContaining("did not look") as string],
    };
    expect((await receipt(engine)).receipt).toMatchObject(made);
    expect((await receipt(engine, { turn: 2 })).receipt).toMatchObject(made);
    expect((await receipt(engine, { turn: 1 })).receipt).toMatchObject({ by: "tree" });
  });
});

describe("action verify", () => {
  it("the answer tells where to read on, like that of a reply", async () => {
    const engine = new FakeEngine();
    engine.add("s1");
    const answer = await runForAnswer(engine, "_session", { action: "verify", sessionId: "s1", commands: ["true"] });
    expect(answer).toEqual({ sessionId: "s1", status: "running", nextCursor: 1, pollInterval: 3_000 });
    const usual = { commands: ["true"], attempts: 1, timeoutMs: 600_000 };
    expect(engine.sessions.get("s1")?.events[0]?.data).toMatchObject({ origin: "verify", verify: usual });
  });

  it("commands are refused if there are more than eight, or if they contain NUL", async () => {
    const engine = new FakeEngine();
    engine.add("s1");
    for (const commands of [Array<string>(9).fill("true"), [], ["a\0b"]]) {
      const { text } = await run(engine, "_session", { action: "verify", sessionId: "s1", commands });
      expect(text).toMatch(/INVALID_ARGUMENT.*commands/);
    }
  });
});
