import { describe, expect, it } from "vitest";
import { toolsOf } from "../../src/tools/toolsets.ts";
import { callOf, depsOf, FakeEngine, TOOLSET_SETTINGS } from "../kit/tools/fake-engine.ts";
import { runTool } from "../kit/tools/run.ts";
import { processorMs } from "../kit/runner/processor-time.ts";

const tools = new Map(toolsOf(["agent"], TOOLSET_SETTINGS).map((tool) => [tool.name, tool]));

async function textOf(name: string, args: unknown): Promise<string> {
  const tool = tools.get(name)!;
  const deps = depsOf(new FakeEngine());
  const reply = await runTool(tool, args, callOf(), deps);
  expect(deps.faults).toEqual([]);
  expect(reply.structured).toMatchObject({ isError: true, error: reply.text, code: "INVALID_ARGUMENT" });
  return reply.text;
}

const start = (args: object) => ["claude_code", { prompt: "hi", ...args }] as const;
const reply = (args: object) => ["claude_code_reply", { sessionId: "s1", prompt: "hi", ...args }] as const;
const poll = (args: object) => ["claude_code_check", { action: "poll", sessionId: "s1", ...args }] as const;
const respond = (args: object) =>
  [
    "claude_code_check",
    { action: "respond_permission", sessionId: "s1", requestId: "r1", decision: "allow", ...args },
  ] as const;
const session = (args: object) => ["claude_code_session", args] as const;

const fromJson = (text: string) => JSON.parse(text) as object;
const deep = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));

describe("a bad argument is INVALID_ARGUMENT and names the field", () => {
  it.each<[readonly [string, unknown], string]>([
    [["claude_code", {}], "prompt: is required."],
    [["claude_code", undefined], "prompt: is required."],
    [["claude_code", []], "arguments: must be an object, not an array."],
    [["claude_code", "hi"], 'arguments: must be an object, not "hi".'],
    [start({ prompt: "" }), "prompt: must not be empty."],
    [start({ prompt: " \n\t " }), "prompt: must not be empty."],
    [start({ prompt: 5 }), "prompt: must be a string, not 5."],
    [start({ prompt: null }), "prompt: must be a string, not null."],
    [start({ prompt: ["hi"] }), "prompt: must be a string, not an array."],
    [start({ prompt: "x".repeat(2_097_153) }), "prompt: must have at most 2097152 characters."],
    [start({ prompt: "half \ud83d" }), "prompt: has a lone surrogate at position 5"],
    [start({ cwd: "/a\0b" }), "cwd: must not contain a NUL character. Remove it."],
    [start({ cwd: 5 }), "cwd: must be a string, not 5."],
    [start({ allowedTools: "Read" }), 'allowedTools: must be an array, not "Read".'],
    [start({ allowedTools: ["Read", ""] }), "allowedTools.1: must not be empty."],
    [start({ allowedTools: [5] }), "allowedTools.0: must be a string, not 5."],
    [start({ disallowedTools: { a: 1 } }), "disallowedTools: must be an array, not an object."],
    [
      start({ disallowedTools: Array.from({ length: 501 }, () => "a") }),
      "disallowedTools: must have at most 500 entries",
    ],
    [start({ maxTurns: 0 }), "maxTurns: must be at least 1, not 0."],
    [start({ maxTurns: -1 }), "maxTurns: must be at least 1, not -1."],
    [start({ maxTurns: 1.5 }), "maxTurns: must be a whole number, not 1.5."],
    [start({ advanced: { maxBudgetUsd: 0 } }), "advanced.maxBudgetUsd: must be greater than 0, not 0."],
    [respond({ answers: [] }), "answers: must be an object, not an array."],
    [
      respond({ permissionOptions: { updatedPermissions: [{ type: "addDirectories", directories: [] }] } }),
      "permissionOptions.updatedPermissions.0.directories: must have at least 1 entry, not 0.",
    ],
    [start({ maxTurns: "three" }), 'maxTurns: must be a number, not "three".'],
    [start({ maxTurns: Number.POSITIVE_INFINITY }), "maxTurns: must be a number, not Infinity."],
    [start({ systemPrompt: 5 }), "systemPrompt: must be a string or an object, not 5."],
    [
      start({ systemPrompt: { type: "preset", preset: "claude_code", apend: "x" } }),
      "systemPrompt.apend: unknown option. Did you mean append? Allowed: type, preset, append.",
    ],
    [
      start({ permissionMode: "delegate" }),
      'permissionMode: must be one of default, acceptEdits, plan, dontAsk, auto, bypassPermissions, not "delegate". That permission mode no longer exists in Claude Code.',
    ],
    [start({ permissionMode: "dontask" }), "Did you mean dontAsk?"],
    [
      start({ permissionMode: "constructor" }),
      'permissionMode: must be one of default, acceptEdits, plan, dontAsk, auto, bypassPermissions, not "constructor".',
    ],
    [start({ permissionRequestTimeoutMs: 10 }), "permissionRequestTimeoutMs: must be at least 1000, not 10."],
    [start({ waitMs: -1 }), "waitMs: must be at least 0, not -1."],
    [start({ waitMs: 45_001 }), "waitMs: must be at most 45000, not 45001: the limit of this server (--max-wait-ms)."],
    [start({ waitMs: 1e300 }), "waitMs: must be at most 9007199254740991, not 1e+300."],
    [start({ idempotencyKey: "k".repeat(201) }), "idempotencyKey: must have at most 200 characters."],
    [
      start({ promt: "hi" }),
      "promt: unknown option. Did you mean prompt? Allowed: prompt, attachments, cwd, allowedTools,",
    ],
    [start({ constructor: 1 }), "constructor: unknown option."],
    [start(fromJson('{"__proto__": {"a": 1}}')), "__proto__: is not allowed as a name. Rename it."],
    [start({ advanced: "x" }), 'advanced: must be an object, not "x".'],
    [
      start({ advanced: { thinkng: { type: "adaptive" } } }),
      "advanced.thinkng: unknown option. Did you mean thinking? Allowed: tools, agents,",
    ],
    [
      start({ advanced: { effort: "hgih" } }),
      'advanced.effort: must be one of low, medium, high, xhigh, max, not "hgih". Did you mean high?',
    ],
    [
      start({ advanced: { thinking: { type: "enabled", budgetTokens: 5 } } }),
      "advanced.thinking.budgetTokens: must be at least 1024, not 5.",
    ],
    [
      start({ advanced: { thinking: { type: "deep" } } }),
      'advanced.thinking.type: must be one of adaptive, enabled, disabled, not "deep".',
    ],
    [
      start({ advanced: { mcpServers: { x: { comand: "a" } } } }),
      "advanced.mcpServers.x.command: is required. advanced.mcpServers.x.comand: unknown option. Did you mean command?",
    ],
    [
      start({ advanced: { mcpServers: { x: { type: "http", url: "nope" } } } }),
      'advanced.mcpServers.x.url: must be a URL, not "nope".',
    ],
    [
      start({ advanced: { mcpServers: { x: { type: "smoke" } } } }),
      "advanced.mcpServers.x.type: must be one of stdio, http, sse",
    ],
    [start({ advanced: { mcpServers: { x: 5 } } }), "advanced.mcpServers.x: must be an object, not 5."],
    [
      start({ advanced: { agents: { a: { description: "d", prompt: "p", permissionMode: "delegate" } } } }),
      "advanced.agents.a.permissionMode: must be one of",
    ],
    [start({ advanced: { agents: { a: { description: "d" } } } }), "advanced.agents.a.prompt: is required."],
    [
      start({ advanced: { agents: { "": { description: "d", prompt: "p" } } } }),
      "advanced.agents.: has a name that is empty or not allowed.",
    ],
    [start({ advanced: { env: { A: 5 } } }), "advanced.env.A: must be a string, not 5."],
    [start({ advanced: { env: { A: null } } }), "advanced.env.A: must be a string"],
    [start({ advanced: { agents: { a: null } } }), "advanced.agents.a: must be an object"],
    [start({ advanced: { env: { A: "x\0" } } }), "env.A: must not contain a NUL character. Remove it."],
    [
      start({ advanced: { env: fromJson('{"__proto__": "x"}') } }),
      "advanced.env.__proto__: is not allowed as a name. Rename it.",
    ],
    [
      start({ advanced: { settingSources: ["user", "globl"] } }),
      "advanced.settingSources.1: must be one of user, project, local",
    ],
    [start({ advanced: { outputFormat: { type: "json_schema" } } }), "advanced.outputFormat.schema: is required."],
    [
      start({ advanced: { outputFormat: { type: "json_schema", schema: { a: deep(200) } } } }),
      "advanced.outputFormat: is nested too deeply. Send it flatter.",
    ],
    [
      start({ advanced: { tools: ["Read"] }, tools: ["Bash"] }),
      "advanced.tools: differs from tools, which is given too. Give it once.",
    ],
    [start({ effort: "extreme" }), "effort: must be one of low"],
    [reply({ sessionId: "" }), "sessionId: must not be empty."],
    [reply({ sessionId: undefined }), "sessionId: is required."],
    [reply({ prompt: "" }), "prompt: must not be empty."],
    [reply({ forkSesion: true }), "forkSesion: unknown option. Did you mean forkSession?"],
    [
      poll({ action: "pol" }),
      'action: must be one of poll, respond_permission, answer_question, not "pol". Did you mean poll?',
    ],
    [
      ["claude_code_check", { sessionId: "s1" }],
      "action: is required: one of poll, respond_permission, answer_question.",
    ],
    [poll({ cursor: -1 }), "cursor: must be at least 0, not -1."],
    [poll({ cursor: "last" }), 'cursor: must be a number, not "last".'],
    [poll({ waitMs: 60_000 }), "waitMs: must be at most 45000"],
    [poll({ until: "never" }), "until: must be one of news, event, end"],
    [poll({ maxEvents: 0 }), "maxEvents: must be at least 1, not 0."],
    [poll({ maxEvents: 1_001 }), "maxEvents: must be at most 1000, not 1001."],
    [poll({ maxBytes: 2_047 }), "maxBytes: must be at least 2048, not 2047."],
    [poll({ maxBytes: 1_048_577 }), "maxBytes: must be at most 1048576"],
    [poll({ requestId: "r1" }), "requestId: is only for action respond_permission or answer_question."],
    [poll({ decision: "allow" }), "decision: is only for action respond_permission or answer_question."],
    [["claude_code_check", { action: "respond_permission", sessionId: "s1" }], "requestId: is required. Take it"],
    [
      ["claude_code_check", { action: "respond_permission", sessionId: "s1", requestId: "r1" }],
      "decision: is required: one of allow, deny, allow_for_session.",
    ],
    [respond({ decision: "yes" }), "decision: must be one of allow, deny, allow_for_session"],
    [respond({ denyMessage: "no" }), "denyMessage: is only allowed with decision deny."],
    [respond({ interrupt: true }), "interrupt: is only allowed with decision deny."],
    [respond({ decision: "deny", interrupt: "yes" }), 'interrupt: must be true or false, not "yes".'],
    [respond({ decision: "deny", permissionOptions: {} }), "permissionOptions: is only allowed with decision allow."],
    [
      respond({ permissionOptions: { updatedInputs: {} } }),
      "permissionOptions.updatedInputs: unknown option. Did you mean updatedInput? Allowed: updatedInput, updatedPermissions.",
    ],
    [respond({ permissionOptions: { updatedInput: "x" } }), "permissionOptions.updatedInput: must be an object"],
    [
      respond({ permissionOptions: { updatedPermissions: [{ type: "addRule" }] } }),
      'permissionOptions.updatedPermissions.0.type: must be one of addRules, replaceRules, removeRules, setMode, addDirectories, removeDirectories, not "addRule". Did you mean addRules?',
    ],
    [
      respond({ permissionOptions: { updatedPermissions: [{ type: "setMode", mode: "yolo" }] } }),
      "permissionOptions.updatedPermissions.0.mode: must be one of default",
    ],
    [
      respond({
        permissionOptions: { updatedPermissions: [{ type: "addDirectories", directories: ["/a"], forever: true }] },
      }),
      "permissionOptions.updatedPermissions.0.forever: unknown option. Allowed: type, destination,",
    ],
    [session({}), "action: is required: one of list, get, cancel, interrupt,"],
    [session({ action: "get" }), "sessionId: is required for action get."],
    [session({ action: "purge", sessionId: "s1" }), "action: must be one of list, get, cancel"],
  ])('a bad argument is answered with "$1"', async ([name, args], problem) => {
    const text = await textOf(name, args);
    expect(text).toMatch(/^Error \[INVALID_ARGUMENT\]: /);
    expect(text).toContain(problem);
  });

  it("up to twenty problems are reported at once", async () => {
    const text = await textOf("claude_code", { prompt: "", maxTurns: 0, waitMs: -1, cwd: 5, model: 5 });
    expect(text).toBe(
      "Error [INVALID_ARGUMENT]: prompt: must not be empty. cwd: must be a string, not 5. maxTurns: must be at least 1, not 0. model: must be a string, not 5. waitMs: must be at least 0, not -1.",
    );
    const names = Array.from({ length: 30 }, (_, index) => `n${String(index)}`);
    const many = await textOf("claude_code", { prompt: "hi", ...Object.fromEntries(names.map((name) => [name, 1])) });
    expect(names.filter((name) => many.includes(`${name}: unknown option.`))).toEqual(names.slice(0, 20));
    expect(many.match(/Allowed: /g)).toHaveLength(1);
    expect(many.endsWith(" There are more problems.")).toBe(true);
  });
});

describe("null or an empty text for an optional parameter", () => {
  const empty = {
    attachments: null,
    cwd: "",
    allowedTools: null,
    maxTurns: null,
    model: "",
    systemPrompt: { type: "preset", preset: "claude_code", append: "" },
    permissionMode: null,
    waitMs: null,
    idempotencyKey: "",
    effort: "",
    advanced: {
      title: "",
      thinking: { type: "adaptive", display: null },
      env: { EMPTY: "" },
      agents: { a: { description: "d", prompt: "p", model: null, tools: null } },
      mcpServers: { lab: { type: "http", url: "https://lab.example/", headers: null } },
    },
  };

  it("`null` or an empty text leaves an optional parameter out, at any depth; values in `env` are kept", async () => {
    const engine = new FakeEngine();
    const answer = await runTool(tools.get("claude_code")!, { prompt: "hi", ...empty }, callOf(), depsOf(engine));
    expect(answer.isError).toBe(false);
    expect(engine.opened[0]?.options).toEqual({
      cwd: "/default",
      systemPrompt: { type: "preset", preset: "claude_code" },
      thinking: { type: "adaptive" },
      env: { EMPTY: "" },
      agents: { a: { description: "d", prompt: "p" } },
      mcpServers: { lab: { type: "http", url: "https://lab.example/" } },
    });
  });

  it("`null` or an empty text is reported as missing if the action requires the parameter", async () => {
    const args = { action: "respond_permission", sessionId: "s1", requestId: "", decision: null };
    expect(await textOf("claude_code_check", args)).toContain("requestId: is required. Take it from actions[]");
  });
});

describe("unusual but valid text is accepted", () => {
  it.each([
    ["NUL", "a\0b"],
    ["emoji of many code points", "👩‍👩‍👧‍👦 🏳️‍🌈"],
    ["control characters and line separators", "\u0001\u001b[31m\u2028\u2029\ufeff"],
    ["a megabyte of escapes", "\u0001".repeat(1_048_576)],
    ["bidirectional text", "\u202e abc \u0645\u0631\u062d\u0628\u0627"],
  ])("a prompt with $0 is accepted", async (_, prompt) => {
    const tool = tools.get("claude_code")!;
    const engine = new FakeEngine();
    const answer = await runTool(tool, { prompt }, callOf(), depsOf(engine));
    expect(answer.isError).toBe(false);
    expect(engine.opened[0]?.prompt.text === prompt).toBe(true);
  });
});

describe("very long input", () => {
  const long = "n".repeat(1_000_000);
  it.each<[string, readonly [string, unknown]]>([
    ["an unknown name", start({ [long]: 1 })],
    ["an unknown name deeper down", start({ advanced: { thinking: { type: "enabled", [long]: 1 } } })],
    [
      "a hundred thousand unknown names",
      start(Object.fromEntries(Array.from({ length: 100_000 }, (_, n) => [`n${String(n)}`, n]))),
    ],
    ["a hundred thousand wrong entries", start({ allowedTools: Array.from({ length: 100_000 }, () => 5) })],
    ["a name around half a character", start({ advanced: { env: { [long]: "\ud800" } } })],
    ["a name around too much nesting", start({ advanced: { [long]: deep(200) } })],
    ["a word that is not allowed", start({ permissionMode: long })],
  ])("very long input is neither repeated nor searched at length: %s", async (_, [name, args]) => {
    let text = "";
    // Computing suggestions for a megabyte once took minutes and blocked the event loop.
    expect(await processorMs(async () => (text = await textOf(name, args)))).toBeLessThan(10_000);
    expect(Buffer.byteLength(text)).toBeLessThan(9_000);
  });
});
