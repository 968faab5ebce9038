import { describe, expect, it } from "vitest";
import { correctToolNames } from "../../src/tools/check-options.ts";
import { KNOWN_TOOLS } from "../../src/domain/options/known-tools.ts";
import { FakeEngine } from "../kit/tools/fake-engine.ts";
import { runForAnswer, check, run } from "../kit/tools/run.ts";

const QUESTIONS = [
  { question: "Which library?", header: "Library", options: [{ label: "A" }, { label: "B" }], multiSelect: false },
  { question: "Which parts?", header: "Parts", options: [{ label: "x" }, { label: "y" }], multiSelect: true },
];

const asking = () => {
  const engine = new FakeEngine();
  const session = engine.add();
  session.startTurn();
  const input = { questions: QUESTIONS, extra: 1 };
  session.openRequest({ kind: "question", toolName: "AskUserQuestion", input });
  return { engine, session, input };
};
const answering = (args: object) => ({
  action: "answer_question",
  sessionId: "s1",
  requestId: "r1",
  waitMs: 0,
  ...args,
});

describe("answer_question", () => {
  it.each([
    [{ "Which library?": "A", "Which parts?": ["x", "y"] }],
    [{ "Which library?": ["B"], "Which parts?": "neither, because" }],
  ])("the answers %j are passed on with the original questions", async (answers) => {
    const { engine, input } = asking();
    await runForAnswer(engine, "_check", answering({ answers }));
    expect(engine.answers).toEqual([
      { requestId: "r1", decision: "allow", by: "caller", updatedInput: { ...input, answers } },
    ]);
  });

  const asked = 'The questions are: "Which library?", "Which parts?".';
  it.each<[object, string]>([
    [{}, `answers: is required: {question text: answer}. ${asked}`],
    [{ answers: {} }, `answers: "Which library?" has no answer. ${asked}`],
    [{ answers: { "Which library?": "A" } }, `answers: "Which parts?" has no answer. ${asked}`],
    [{ answers: { "Which libary?": "A" } }, `answers: "Which libary?" is not one of the questions. ${asked}`],
    [{ answers: { constructor: "A" } }, `answers: "constructor" is not one of the questions. ${asked}`],
    [
      { answers: { "Which library?": ["A", "B"], "Which parts?": "x" } },
      'answers: "Which library?" takes one answer, not 2.',
    ],
    [{ answers: { "Which library?": "" } }, "answers.Which library?: must not be empty."],
    [{ answers: { "Which library?": 5 } }, "answers.Which library?: must be a string or an array, not 5."],
    [
      { answers: {}, decision: "allow" },
      "decision: is only for action respond_permission, which can also deny a question.",
    ],
    [{ answers: {}, denyMessage: "no" }, "denyMessage: is only for action respond_permission"],
  ])("answer_question with %j is refused", async (args, problem) => {
    const { engine } = asking();
    const reply = await run(engine, "_check", answering(args));
    expect(reply.text).toContain(`Error [INVALID_ARGUMENT]: ${problem}`);
    expect(engine.answers).toEqual([]);
  });

  it("answer_question is for questions only, and respond_permission accepts no answers", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    session.openRequest();
    const reply = await run(engine, "_check", answering({ answers: { a: "b" } }));
    expect(reply.text).toContain(
      "requestId: r1 is a request of the tool Bash. Answer it with action respond_permission.",
    );
    const nameless = await run(engine, "_check", { action: "answer_question", sessionId: "s1", answers: { a: "b" } });
    expect(nameless.text).toContain("requestId: is required. Take it from actions[] of a poll.");
    const other = { action: "respond_permission", sessionId: "s1", requestId: "r1", decision: "allow", answers: {} };
    expect((await run(engine, "_check", other)).text).toContain("answers: is only for action answer_question.");
  });

  it("an answer to a request that is not open is PERMISSION_REQUEST_NOT_FOUND", async () => {
    const { engine } = asking();
    const reply = await run(engine, "_check", answering({ requestId: "r9", answers: {} }));
    expect(reply.structured).toMatchObject({ code: "PERMISSION_REQUEST_NOT_FOUND" });
  });
});

describe("availableTools", () => {
  it("`availableTools` lists the tools that Claude Code reported last, with their descriptions", async () => {
    const engine = new FakeEngine();
    const session = engine.add();
    session.startTurn();
    const init = (tools: string[]) =>
      session.emit({ type: "message", data: { message: { type: "system", subtype: "init", model: "opus", tools } } });
    init(["Read"]);
    for (let line = 0; line < 450; line += 1) session.emitText("x");
    init(["Task", "Bash", "mcp__lab__run", "BrandNew"]);
    for (let line = 0; line < 450; line += 1) session.emitText("x");
    const answer = await check(engine, { cursor: 900, pollOptions: { includeTools: true } });
    expect(answer).toHaveProperty("availableTools", [
      { name: "Agent", category: "agents", description: expect.any(String) },
      { name: "Bash", category: "shell", description: expect.any(String) },
      { name: "mcp__lab__run", category: "mcp" },
      { name: "BrandNew", category: "other" },
    ]);
    expect(await check(engine, { cursor: 900 })).not.toHaveProperty("availableTools");
  });

  it("`availableTools` lists all known tools before Claude Code has started, in a part of the answer", async () => {
    const engine = new FakeEngine();
    engine.add().startTurn();
    const whole = await check(engine, { pollOptions: { includeTools: true } });
    expect(whole).toHaveProperty("availableTools", KNOWN_TOOLS);
    const small = await check(engine, { pollOptions: { includeTools: true }, maxBytes: 2_048 });
    expect(small.truncatedFields).toEqual(["availableTools"]);
    expect(small).toHaveProperty("availableTools.0", { name: "Read", category: "files" });
  });
});

describe("the names of tools in options", () => {
  it("a tool name in options is corrected if the intended name is clear", () => {
    const { options, warnings } = correctToolNames({
      cwd: "/",
      allowedTools: ["bash", "READ", "bash(git commit:*)", "mcp__Lab__Run", "Edit(/a/*)"],
      disallowedTools: ["Task", "websearch", "*"],
      tools: ["task", "mcp__*"],
    });
    expect(options).toEqual({
      cwd: "/",
      allowedTools: ["Bash", "Read", "Bash(git commit:*)", "mcp__Lab__Run", "Edit(/a/*)"],
      disallowedTools: ["Agent", "WebSearch", "*"],
      tools: ["Agent", "mcp__*"],
    });
    expect(warnings).toEqual([]);
  });

  it("an unknown tool name in options is kept, with a warning", () => {
    const { options, warnings } = correctToolNames({
      cwd: "/",
      allowedTools: ["Reed(/a)", "constructor"],
      tools: ["Bash"],
    });
    expect(options.allowedTools).toEqual(["Reed(/a)", "constructor"]);
    expect(warnings).toEqual([
      "allowedTools: this server knows no tool Reed. Did you mean Read?",
      "allowedTools: this server knows no tool constructor.",
    ]);
    const many = correctToolNames({
      cwd: "/",
      disallowedTools: Array.from({ length: 400 }, (_, index) => `x${"y".repeat(100)}${String(index)}`),
    });
    expect(many.warnings).toHaveLength(11);
    expect(many.warnings.at(-1)).toBe("And 390 more.");
  });

  it("a preset of tools is kept", () => {
    const tools = { type: "preset", preset: "claude_code" } as const;
    expect(correctToolNames({ cwd: "/", tools })).toEqual({ options: { cwd: "/", tools }, warnings: [] });
  });

  it("an unknown tool name causes a warning in the answer to the start", async () => {
    const engine = new FakeEngine();
    const answer = await runForAnswer(engine, "", { prompt: "x", allowedTools: ["Reed", "read"] });
    expect(answer).toHaveProperty("warnings", ["allowedTools: this server knows no tool Reed. Did you mean Read?"]);
    expect(engine.opened[0]?.options.allowedTools).toEqual(["Reed", "Read"]);
    expect(await runForAnswer(engine, "", { prompt: "x" })).not.toHaveProperty("warnings");
  });
});
