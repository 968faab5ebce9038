import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in", daemon: "auto" });
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const check = async (args: Record<string, unknown>) => server.call("claude_code_check", { waitMs: 40_000, ...args });
const respond = async (sessionId: string, requestId: string | undefined, args: Record<string, unknown>) =>
  check({ action: "respond_permission", sessionId, requestId, ...args });
const resultsOf = ({ events }: Answer) => events.filter(({ type }) => type === "permission_result");

/** Polls until `count` requests are open. */
async function pollRequests(sessionId: string, count: number): Promise<Answer> {
  let answer = await server.news(sessionId);
  for (let cursor = answer.nextCursor; answer.actions.length < count; cursor = answer.nextCursor) {
    answer = await check({ action: "poll", sessionId, cursor, until: "event" });
    if (!["running", "waiting_permission"].includes(answer.status)) throw new Error(JSON.stringify(answer));
  }
  return answer;
}

describe("requests that are open at the same time, and `claude_code_check`", () => {
  it("open requests are answered separately (`requestId`, `decision`, `denyMessage`); a second answer learns the first", async () => {
    const [cwd, elsewhere] = [world.folder(), world.folder()];
    const files = ["one", "two", "three"].map((name) => join(elsewhere, name));
    for (const file of files) writeFileSync(file, `the text of ${file}`);
    const tools = files.map((file) => ({ name: "Read", input: { file_path: file } }));
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag([{ tools }, { text: "Read." }]), cwd });
    const open = await pollRequests(sessionId, 3);
    const byFile = (file: string | undefined) =>
      open.actions.find(({ input }) => input["file_path"] === file)?.requestId;
    expect(new Set(open.actions.map(({ requestId }) => requestId)).size).toBe(3);

    const [one, two, three] = files.map(byFile);
    const first = await respond(sessionId, three, { decision: "allow" });
    // The answer shows other open requests at once.
    expect(new Set(first.actions.map(({ requestId }) => requestId))).toEqual(new Set([one, two]));
    const again = { action: "respond_permission", sessionId, requestId: three, decision: "deny" };
    const late = await server.refusal("claude_code_check", again);
    expect(late).toMatchObject({ code: "PERMISSION_REQUEST_NOT_FOUND" });
    expect(late.text).toContain(`Request ${String(three)} was already answered: allow, by caller.`);
    await respond(sessionId, one, { decision: "deny", denyMessage: "That one is private." });
    const done = await respond(sessionId, two, { decision: "allow" });
    expect(done).toMatchObject({ status: "idle", actions: [], result: { result: "Read.", isError: false } });
    const all = await check({ action: "poll", sessionId, responseMode: "delta_compact" });
    const outcomes = all.events
      .filter(({ data }) => data["ok"] !== undefined)
      .map(({ data }) => String(data["output"]));
    expect(outcomes.filter((text) => text.includes("That one is private."))).toHaveLength(1);
    expect(outcomes.filter((text) => text.includes("the text of"))).toHaveLength(2);
    expect(resultsOf(all).map(({ data }) => [data["decision"], data["by"]])).toEqual([
      ["allow", "caller"],
      ["deny", "caller"],
      ["allow", "caller"],
    ]);
  });

  it("a denial with `interrupt` ends all open requests", async () => {
    const [cwd, elsewhere] = [world.folder(), world.folder()];
    const files = ["one", "two"].map((name) => join(elsewhere, name));
    for (const file of files) writeFileSync(file, "text");
    const tools = files.map((file) => ({ name: "Read", input: { file_path: file } }));
    const { sessionId } = await server.call("claude_code", { prompt: scriptTag([{ tools }, { text: "no" }]), cwd });
    const open = await pollRequests(sessionId, 2);
    const requestId = open.actions[0]?.requestId;
    await respond(sessionId, requestId, { decision: "deny", denyMessage: "Stop.", interrupt: true });
    const done = await server.end(sessionId);
    expect(done).toMatchObject({ status: "idle", result: { isError: true, errorSubtype: "interrupted" } });
    const ends = resultsOf(done).map(({ data }) => [data["requestId"] === requestId, data["decision"], data["by"]]);
    expect(ends).toEqual([
      [true, "deny", "caller"],
      [false, "deny", "withdrawn"],
    ]);
    const next = { sessionId, prompt: scriptTag([{ text: "Still here." }]), waitMs: 40_000 };
    expect(await server.call("claude_code_reply", next)).toMatchObject({ result: { result: "Still here." } });
  });
});

describe("the time limit of a request", () => {
  it("a request counts down its time, and its end is reported as a denial by timeout", async () => {
    const cwd = world.folder();
    const script = [{ tools: [{ name: "Bash", input: { command: "touch x" } }] }, { text: "I go on without." }];
    const start = { prompt: scriptTag(script), cwd, permissionRequestTimeoutMs: 6_000 };
    const { sessionId } = await server.call("claude_code", start);
    const left = async () => {
      const { actions } = await check({ action: "poll", sessionId, waitMs: 0, responseMode: "delta_compact" });
      const [action] = z
        .array(z.object({ createdAt: z.string(), expiresAt: z.string(), remainingMs: z.number() }))
        .parse(actions);
      if (!action) throw new Error("nothing is asked");
      expect(Date.parse(action.expiresAt) - Date.parse(action.createdAt)).toBe(6_000);
      return action.remainingMs;
    };
    await server.news(sessionId);
    const before = await left();
    await expect.poll(left, { interval: 20 }).toBeLessThan(before);
    const done = await server.end(sessionId);
    expect(done).toMatchObject({ status: "idle", result: { result: "I go on without." } });
    expect(resultsOf(done)).toMatchObject([{ data: { decision: "deny", by: "timeout" } }]);
    expect(existsSync(join(cwd, "x"))).toBe(false);
  });
});

describe("an input that was shown cut", () => {
  it("a cut input can be replaced (`permissionOptions` of `claude_code_check`) once all its pages were read", async () => {
    const cwd = world.folder();
    const file = join(cwd, "long.txt");
    const input = { file_path: file, content: "line of the file, é 😀 \u0001\n".repeat(400) };
    const { sessionId } = await server.call("claude_code", {
      prompt: scriptTag([{ tools: [{ name: "Write", input }] }, { text: "Written." }]),
      cwd,
    });
    const open = await check({ action: "poll", sessionId, maxBytes: 2_048 });
    const [action] = open.actions;
    expect(action).toMatchObject({ inputTruncated: true, inputEventId: expect.any(Number) });
    const changed = { decision: "allow", permissionOptions: { updatedInput: { file_path: file, content: "short" } } };
    const early = { action: "respond_permission", sessionId, requestId: action?.requestId, ...changed };
    const refused = await server.refusal("claude_code_check", early);
    expect(refused.text).toContain(`Read all of event ${String(action?.["inputEventId"])} first (poll with eventId)`);

    let text = "";
    let offset: unknown = 0;
    let pages = 0;
    while (offset !== undefined) {
      const part = await server.call("claude_code_check", {
        action: "poll",
        sessionId,
        eventId: action?.["inputEventId"],
        offset,
        maxBytes: 4_096,
      });
      text += String(part["content"]);
      offset = part["nextOffset"];
      pages += 1;
    }
    expect(pages).toBeGreaterThan(2);
    expect(JSON.parse(text)).toMatchObject({ requestId: action?.requestId, toolName: "Write", input });
    const done = await respond(sessionId, action?.requestId, changed);
    expect(done).toMatchObject({ status: "idle", result: { result: "Written." } });
    expect(readFileSync(file, "utf8")).toBe("short");
  });
});

const QUESTIONS = [
  {
    question: "Which library?",
    header: "Library",
    multiSelect: false,
    options: [
      { label: "Fast", description: "quick" },
      { label: "Small", description: "tiny" },
    ],
  },
  {
    question: "Which parts?",
    header: "Parts",
    multiSelect: true,
    options: [
      { label: "Server", description: "s" },
      { label: "Client", description: "c" },
    ],
  },
];

describe("questions to the user", () => {
  const ask = async () => {
    const script = [{ tools: [{ name: "AskUserQuestion", input: { questions: QUESTIONS } }] }, { text: "Understood." }];
    const started = await server.call("claude_code", { prompt: scriptTag(script), cwd: world.folder() });
    return server.news(started.sessionId, started.nextCursor);
  };

  it("a question arrives with its options and is answered by label, labels or a text: `answers` of `claude_code_check`", async () => {
    const open = await ask();
    const { sessionId } = open;
    const [action] = open.actions;
    expect(action).toMatchObject({ type: "question", toolName: "AskUserQuestion", input: { questions: QUESTIONS } });
    const wrong = { action: "answer_question", sessionId, requestId: action?.requestId, answers: { "Which?": "Fast" } };
    const refused = await server.refusal("claude_code_check", wrong);
    expect(refused.code).toBe("INVALID_ARGUMENT");
    expect(refused.text).toContain('The questions are: "Which library?", "Which parts?".');
    const allow = { action: "respond_permission", sessionId, requestId: action?.requestId, decision: "allow" };
    const unanswered = await server.refusal("claude_code_check", allow);
    expect(unanswered).toMatchObject({ code: "INVALID_ARGUMENT", text: expect.stringContaining("answer_question") });
    const answers = { "Which library?": "Neither: write it yourself", "Which parts?": ["Server", "Client"] };
    const done = await check({ ...wrong, answers });
    expect(done).toMatchObject({ status: "idle", actions: [], result: { result: "Understood." } });
    const outcome = done.events.map(({ data }) => String(data["output"])).join("");
    const { content } = await page(sessionId, done.events.find(({ data }) => data["ok"] === true)?.id);
    expect(outcome).not.toBe("");
    for (const said of ["Which library?", "Neither: write it yourself", "Server", "Client"])
      expect(content).toContain(said);
  });

  it("a question is declined with respond_permission, and the message is reported", async () => {
    const { actions, sessionId } = await ask();
    const done = await respond(sessionId, actions[0]?.requestId, {
      decision: "deny",
      denyMessage: "Decide for yourself.",
    });
    expect(JSON.stringify(done.events)).toContain("Decide for yourself.");
  });
});

async function page(sessionId: string, eventId: number | undefined): Promise<{ content: string }> {
  const answer = await server.call("claude_code_check", { action: "poll", sessionId, eventId });
  return { content: String(answer["content"]) };
}

describe("plans", () => {
  /** Path to which Claude Code has told the model to write its plan. */
  const planFile = (sessionId: string) => /"planFilePath":"([^"]+)"/.exec(world.transcript(sessionId))?.[1] ?? "";

  it("a plan is shown, sent back with feedback, and approved", async () => {
    const cwd = world.folder();
    const start = { prompt: scriptTag([{ text: "I think." }]), cwd, permissionMode: "plan" };
    const { sessionId } = await server.call("claude_code", start);
    await server.end(sessionId);
    const plan = "# Plan\n\n1. Read everything.\n2. Change one line.";
    const show = { name: "ExitPlanMode", input: {} };
    const script = [
      { tools: [{ name: "Write", input: { file_path: planFile(sessionId), content: plan } }] },
      { tools: [show] },
      { text: "With tests, then.", tools: [show] },
      { text: "I begin." },
    ];
    const replied = await server.call("claude_code_reply", { sessionId, prompt: scriptTag(script) });
    const first = await server.news(sessionId, replied.nextCursor);
    expect(first.actions).toMatchObject([
      {
        type: "permission",
        toolName: "ExitPlanMode",
        input: { plan },
        summary: expect.stringContaining("# Plan 1. Read"),
      },
    ]);
    const feedback = { decision: "deny", denyMessage: "The tests are missing." };
    const second = await respond(sessionId, first.actions[0]?.requestId, feedback);
    expect(JSON.stringify(second.events)).toContain("The tests are missing.");
    expect(second.actions).toMatchObject([{ toolName: "ExitPlanMode", input: { plan } }]);
    const done = await respond(sessionId, second.actions[0]?.requestId, { decision: "allow" });
    expect(done).toMatchObject({ status: "idle", result: { result: "I begin.", isError: false } });
    const { sessions } = await server.call("claude_code_session", { action: "get", sessionId });
    expect(sessions).toMatchObject([{ permissionMode: "default" }]);
  });
});
