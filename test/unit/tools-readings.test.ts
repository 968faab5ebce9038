import fc from "fast-check";
import { z } from "zod";
import { describe, expect, it } from "vitest";

import { parseArguments } from "../../src/tools/arguments/parse.ts";
import { kindOfForm, optionsOf, shapeOf, unwrapped, type Schema } from "../../src/tools/arguments/schema.ts";
import { amount } from "../kit/runner/amount.ts";
import { callOf, depsOf, FakeEngine } from "../kit/tools/fake-engine.ts";
import { runTool, tools } from "../kit/tools/run.ts";

/** Reads arguments that may have several forms, or that come as JSON text. */

const schemas = new Map([...tools].map(([name, { input }]) => [name, input]));

/** Returns every subschema of `schema` with its path. */
function placesIn(schema: Schema, path = ""): [string, Schema][] {
  const options = optionsOf(schema);
  const [inner = schema] = options;
  if (options.length > 1) return [[path, schema], ...options.flatMap((option) => placesIn(option, path))];
  if (inner instanceof z.ZodArray) return [[path, inner], ...placesIn(inner.element, `${path}.*`)];
  if (inner instanceof z.ZodRecord) return [[path, inner], ...placesIn(inner.valueType, `${path}.*`)];
  const below = Object.entries(shapeOf(inner) ?? {});
  return [[path, inner], ...below.flatMap(([name, each]) => placesIn(each, path === "" ? name : `${path}.${name}`))];
}

const places = () => [...schemas.values()].flatMap((schema) => placesIn(schema));

const start = (args: object) => ["claude_code", { prompt: "x", ...args }] as const;
const agent = (args: object) => start({ agents: { a: { description: "d", prompt: "p", ...args } } });
const image = (args: object) => start({ attachments: [args] });
const server = (args: unknown) => start({ mcpServers: { x: args } });
const update = (args: unknown) => answer({ permissionOptions: { updatedPermissions: [args] } });
const list = (args: object) => ["claude_code_session", { action: "list", ...args }] as const;
const answer = (args: object) =>
  ["claude_code_check", { action: "answer_question", sessionId: "s1", requestId: "r1", ...args }] as const;
type Call = readonly [string, object];

async function refusal([name, args]: Call): Promise<string> {
  const deps = depsOf(new FakeEngine());
  const { structured, text } = await runTool(tools.get(name)!, args, callOf(), deps);
  expect([structured["code"], deps.faults]).toEqual(["INVALID_ARGUMENT", []]);
  return text.replace("Error [INVALID_ARGUMENT]: ", "");
}

const url = "https://a.example/";
const IMAGES = "one of image/png, image/jpeg, image/gif, image/webp";
const REMOTE = "type, url, headers, tools, timeout, alwaysLoad";
const LOCAL = "type, command, args, env, timeout, alwaysLoad";
const STATUS = "one of running, waiting_permission, idle, error, cancelled, closed";

describe("a value that may have several forms", () => {
  const ROWS: [string, Call, string][] = [
    ["attachments.*", image({ data: "aGk=", mediaType: "application/pdf" }), `mediaType: must be ${IMAGES}, not "app`],
    ["attachments.*", image({ data: "aGk=", mediaType: "image/jpg" }), "Did you mean image/jpeg?"],
    ["attachments.*", image({ data: "aGk=" }), `attachments.0.mediaType: is required: ${IMAGES}.`],
    [
      "attachments.*",
      image({ data: "aGk=", media_type: "image/png" }),
      "media_type: unknown option. Did you mean mediaType? Allowed: data, mediaType.",
    ],
    ["attachments.*", image({ path: "/a", mediaType: "image/png" }), "0.mediaType: unknown option. Allowed: path."],
    ["attachments.*", image({ path: "" }), "attachments.0.path: must not be empty."],
    [
      "attachments.*",
      image({ url }),
      "attachments.0: must have path, or data and mediaType. attachments.0.url: unknown option. Allowed: path, data, mediaType.",
    ],
    ["attachments.*", start({ attachments: ["/a.png"] }), 'attachments.0: must be an object, not "/a.png".'],
    ["systemPrompt", start({ systemPrompt: 5 }), "systemPrompt: must be a string or an object, not 5."],
    [
      "systemPrompt",
      start({ systemPrompt: { append: "x" } }),
      "systemPrompt.type: is required: preset. systemPrompt.preset: is required: claude_code.",
    ],
    ["tools", start({ tools: "Read" }), 'tools: must be an array or an object, not "Read".'],
    ["tools", start({ tools: ["Read", 5] }), "tools.1: must be a string, not 5."],
    ["agents.*.mcpServers.*", agent({ mcpServers: [5] }), "mcpServers.0: must be a string or an object, not 5."],
    ["agents.*.mcpServers.*.*", agent({ mcpServers: [{ x: { url } }] }), "mcpServers.0.x.type: is required: one of"],
    [
      "agents.*.effort",
      agent({ effort: "hgih" }),
      'must be one of low, medium, high, xhigh, max, or a number, not "hgih". Did you mean high?',
    ],
    ["agents.*.effort", agent({ effort: 0 }), "agents.a.effort: must be at least 1, not 0."],
    ["verify", start({ verify: "npm test" }), 'verify: must be an array or an object, not "npm test".'],
    ["verify", start({ verify: { attempts: 2 } }), "verify.commands: is required."],
    [
      "verify",
      start({ verify: { commands: ["a"], ownTurns: true } }),
      "verify.ownTurns: unknown option. Allowed: commands, attempts, timeoutMs.",
    ],
    ["thinking", start({ thinking: {} }), "thinking.type: is required: one of adaptive, enabled, disabled."],
    ["thinking", start({ thinking: { budgetTokens: 2000 } }), "thinking.type: is required: enabled."],
    [
      "thinking",
      start({ thinking: { type: "deep", budgetTokens: 2000 } }),
      'thinking.type: must be one of adaptive, enabled, disabled, not "deep".',
    ],
    [
      "thinking",
      start({ thinking: { type: "adaptive", budgetTokens: 2000 } }),
      "thinking.budgetTokens: unknown option. Allowed: type, display.",
    ],
    ["mcpServers.*", server({ url }), "mcpServers.x.type: is required: one of http, sse, streamable-http."],
    ["mcpServers.*", server({ url: "a" }), 'streamable-http. mcpServers.x.url: must be a URL, not "a".'],
    [
      "mcpServers.*",
      server({ type: "stdio", url }),
      `mcpServers.x.command: is required. mcpServers.x.url: unknown option. Allowed: ${LOCAL}.`,
    ],
    [
      "mcpServers.*",
      server({ type: "http", command: "a" }),
      `mcpServers.x.url: is required. mcpServers.x.command: unknown option. Allowed: ${REMOTE}.`,
    ],
    ["mcpServers.*", server({ type: "ws", url }), 'must be one of stdio, http, sse, streamable-http, not "ws".'],
    [
      "mcpServers.*",
      server({ comand: "a" }),
      "mcpServers.x.command: is required. mcpServers.x.comand: unknown option.",
    ],
    ["mcpServers.*", server({ command: "a", url }), `mcpServers.x.url: unknown option. Allowed: ${LOCAL}.`],
    ["mcpServers.*", server({ command: ["a"] }), "mcpServers.x.command: must be a string, not an array."],
    ["mcpServers.*", server({ timeout: 5000 }), "mcpServers.x: must have command, or type and url."],
    ["mcpServers.*", server("npx a"), 'mcpServers.x: must be an object, not "npx a".'],
    ["skills", start({ skills: "some" }), 'skills: must be all or an array, not "some".'],
    ["skills", start({ skills: [""] }), "skills.0: must not be empty."],
    ["permissionOptions.updatedPermissions.*", update({ rules: [] }), "0.type: is required: one of addRules, replace"],
    ["permissionOptions.updatedPermissions.*", update({ mode: "plan" }), "0.type: is required: setMode."],
    [
      "permissionOptions.updatedPermissions.*",
      update({ type: "addRules", behavior: "allow", rules: [{ tool: "Bash" }] }),
      "rules.0.tool: unknown option. Did you mean toolName? Allowed: toolName, ruleContent.",
    ],
    ["answers.*", answer({ answers: { q: 5 } }), "answers.q: must be a string or an array, not 5."],
    ["answers.*", answer({ answers: { q: [] } }), "answers.q: must have at least 1 entry, not 0."],
    ["status", list({ status: "idl" }), `status: must be ${STATUS}, or an array, not "idl". Did you mean idle?`],
    ["status", list({ status: ["idl"] }), `status.0: must be ${STATUS}, not "idl". Did you mean idle?`],
    ["since", list({ since: true }), "since: must be a string or a number, not true."],
    ["since", list({ since: -1 }), "since: must be at least 0, not -1."],
  ];

  it.each(ROWS)("the error for %s is about the form that its names belong to: %j", async (_, call, text) =>
    expect(await refusal(call)).toContain(text),
  );

  it("every place that takes several forms has a row", () => {
    const several = places().filter(([, schema]) => optionsOf(schema).length > 1);
    const names = several.map(([path]) => path.replace(/^(?:advanced|diskResumeConfig)\./, ""));
    expect(new Set(ROWS.map(([path]) => path))).toEqual(new Set(names));
  });

  it("an unknown name is never offered in place of itself", async () => {
    const value = fc.constantFrom("stdio", "http", "enabled", "a", url, 5, ["a"]);
    const name = fc.constantFrom(
      ..."type,url,uri,command,comand,args,env,headers,tools,timeout,data,path,mediaType".split(","),
    );
    const property = fc.asyncProperty(fc.dictionary(name, value, { maxKeys: 6 }), async (given) => {
      for (const call of [server(given), image(given), start({ thinking: given })]) {
        const { text } = await runTool(tools.get(call[0])!, call[1], callOf(), depsOf(new FakeEngine()));
        expect(text).not.toMatch(/\.(\w+): unknown option\.[^.]*\b\1\b/);
        expect(text).not.toContain("Allowed: .");
      }
    });
    await fc.assert(property, { numRuns: amount(200, 2_000) });
  });
});

describe("other names that Claude Code takes", () => {
  it("`streamable-http` and a media type in capitals are accepted", () => {
    const schema = schemas.get("claude_code")!;
    const args = { prompt: "x", mcpServers: { x: { type: "streamable-http", url } } };
    expect(parseArguments(schema, args, [])).toMatchObject({ mcpServers: { x: { type: "http", url } } });
    const attachments = [{ data: "aGk=", mediaType: "IMAGE/Png" }];
    expect(parseArguments(schema, { prompt: "x", attachments }, [])).toMatchObject({
      attachments: [{ data: "aGk=", mediaType: "image/png" }],
    });
  });
});

/** Returns `args` with every value that is not a string as JSON text. */
const asText = (args: object): object =>
  Object.fromEntries(
    Object.entries(args).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );

describe("JSON text", () => {
  const ADVANCED = { effort: "low", thinking: { type: "adaptive" }, env: { A: "5" }, timeout: 5_000, mcpServers: {} };
  it.each<Call>([
    start({
      waitMs: 5_000,
      allowedTools: ["Read"],
      disallowedTools: [],
      maxTurns: 3,
      tools: { type: "preset", preset: "claude_code" },
    }),
    start({ tools: ["Read"], advanced: ADVANCED, debug: true, maxBudgetUsd: 0.5, taskBudget: { total: 5 } }),
    // Values beside fixed words, such as `all`.
    start({ skills: ["a"], agents: { a: asText({ description: "d", prompt: "p", effort: 5 }) } }),
    list({ status: ["idle"] }),
    start({ advanced: asText(ADVANCED), attachments: [{ data: "aGk=", mediaType: "image/png" }] }),
    ["claude_code_reply", { sessionId: "s1", prompt: "x", forkSession: true, waitMs: 0, attachments: [] }],
    [
      "claude_code_check",
      { action: "poll", sessionId: "s1", cursor: 1, sessions: [{ sessionId: "s1", cursor: 2 }], pollOptions: {} },
    ],
    answer({ interrupt: false, answers: { q: ["a"] }, permissionOptions: { updatedInput: { command: "5" } } }),
    ["claude_code_session", { action: "list", limit: 5, includeSensitive: false }],
    [
      "claude_code_query",
      { prompt: "x", maxTurns: 3, allowedTools: ["Read"], maxMessages: 5, includeSystemMessages: true },
    ],
    ["claude_chat_query", { sessionId: "s1", prompt: "x", includeThinking: true, closeAfter: false }],
    ["claude_direct_query", { prompt: "x", includeThinking: true }],
  ])("JSON text is read where the schema takes no text but fixed words: %s %j", (name, args) => {
    const schema = schemas.get(name)!;
    expect(parseArguments(schema, asText(args), [])).toEqual(parseArguments(schema, args, []));
  });

  it.each([
    ["[1]", "true", "5"],
    ['{"type":"preset","preset":"claude_code"}', '["a"]', '""'],
  ])("JSON text is left as it is where the schema takes a text: %s", (...texts) => {
    for (const text of texts) {
      const args = { prompt: text, systemPrompt: text, model: text, env: { A: text }, allowedTools: [text] };
      expect(parseArguments(schemas.get("claude_code")!, args, [])).toEqual(args);
      const answers = { action: "answer_question", answers: { q: text } };
      expect(parseArguments(schemas.get("claude_code_check")!, answers, [])).toEqual(answers);
    }
  });

  it.each<[Call, string]>([
    [start({ waitMs: "5s" }), 'waitMs: must be a number, not "5s".'],
    [start({ waitMs: "0x10" }), 'waitMs: must be a number, not "0x10".'],
    [start({ waitMs: "true" }), 'waitMs: must be a number, not "true".'],
    [start({ waitMs: "[5]" }), 'waitMs: must be a number, not "[5]".'],
    [start({ waitMs: "null" }), 'waitMs: must be a number, not "null".'],
    [start({ waitMs: '"5"' }), "waitMs: must be a number, not "],
    [start({ maxTurns: "1.5" }), "maxTurns: must be a whole number, not 1.5."],
    [start({ maxTurns: "0" }), "maxTurns: must be at least 1, not 0."],
    [start({ debug: "True" }), 'debug: must be true or false, not "True".'],
    [start({ debug: "1" }), 'debug: must be true or false, not "1".'],
    [start({ allowedTools: "Read" }), 'allowedTools: must be an array, not "Read".'],
    [start({ allowedTools: "['Read']" }), "allowedTools: must be an array, not \"['Read']\"."],
    [start({ allowedTools: "[5]" }), "allowedTools.0: must be a string, not 5."],
    [start({ allowedTools: '{"a":1}' }), "allowedTools: must be an array, not "],
    [start({ advanced: '{"efort":"low"}' }), "advanced.efort: unknown option. Did you mean effort?"],
    // Values beside fixed words, such as `all`.
    [start({ skills: '"all"' }), 'skills: must be all or an array, not "\\"all\\"".'],
    [agent({ effort: "0" }), "agents.a.effort: must be at least 1, not 0."],
    [list({ status: '["idl"]' }), "status.0: must be one of running"],
    // JSON text is held to the limits of a message.
    [start({ advanced: '{"title":"\\ud800"}' }), "advanced.title: has a lone surrogate"],
    [start({ advanced: '{"__proto__":{}}' }), "advanced.__proto__: is not allowed as a name."],
    [start({ allowedTools: `${"[".repeat(200)}${"]".repeat(200)}` }), "is nested too deeply."],
    [start({ allowedTools: `${"[".repeat(2_000)}${"]".repeat(2_000)}` }), "allowedTools: must be an array."],
    [
      start({ allowedTools: JSON.stringify(Array.from({ length: 20_000 }, () => "")) }),
      "allowedTools: must be an array.",
    ],
    [start({ allowedTools: JSON.stringify(["x".repeat(1_048_577)]) }), "allowedTools: must be an array."],
  ])("JSON text is refused where its value does not fit: %j", async (call, text) =>
    expect(await refusal(call)).toContain(text),
  );

  it("the schema of every field says if JSON text is read", () => {
    const unknown = places().filter(([, schema]) => optionsOf(schema).length === 1 && !kindOfForm(unwrapped(schema)));
    // Not read: values of foreign schemas, and `mediaType`, a word in any case.
    const names = unknown.map(([path]) => path.split(".").slice(-2).join("."));
    expect(new Set(names)).toEqual(new Set(["schema.*", "updatedInput.*", "*.mediaType"]));
  });
});
