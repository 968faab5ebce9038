import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { INITIALIZE } from "../kit/servers/http-server.ts";

/** Every line on stdin is answered, or logged if no client could read an answer. */

let child: ChildProcessWithoutNullStreams;
let answers: Interface;
let stderr = "";
beforeAll(async () => {
  const args = ["dist/cli/main.js", "serve", "--store", "memory:", "--log-level", "warn"];
  child = spawn(process.execPath, args, { stdio: "pipe" });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  answers = createInterface({ input: child.stdout });
  await answerTo(JSON.stringify(INITIALIZE));
});
afterAll(async () => {
  child.stdin.end();
  await once(child, "exit");
});

async function answerTo(line: string): Promise<unknown> {
  const answered = once(answers, "line");
  child.stdin.write(`${line}\n`);
  const [text] = (await answered) as [string];
  return JSON.parse(text);
}

const request = (fields: object): string => JSON.stringify({ jsonrpc: "2.0", id: 5, method: "ping", ...fields });
const CHECKED = "claude_code_session";
const raw = (id: string): string => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`;

describe("invalid lines on stdin", () => {
  it.each([
    ["that is not JSON", "hello", -32_700, null],
    ["that is half a message", '{"jsonrpc":"2.0","id":5', -32_700, null],
    ["that is a number", "5", -32_600, null],
    ["that is null", "null", -32_600, null],
    ["that is an empty batch", "[]", -32_600, null],
    ["that is a batch", `[${raw("5")}]`, -32_600, 5],
    ["with a fractional id", raw("1.5"), -32_600, 1.5],
    ["with an id too large for a number", raw("1e999"), -32_600, Infinity],
    ["with an id of 300,000 characters", raw(`"${"y".repeat(300_000)}"`), -32_600, "y".repeat(300_000)],
    ["whose id is null", raw("null"), -32_600, null],
    ["whose id is an object", raw("{}"), -32_600, null],
    ["with an id and the method of a notification", request({ method: "notifications/initialized" }), -32_600, 5],
    ["of another JSON-RPC version", request({ jsonrpc: "1.0" }), -32_600, 5],
    ["without a JSON-RPC version", request({ jsonrpc: undefined }), -32_600, 5],
    ["whose method is a number", request({ method: 5 }), -32_600, 5],
    ["whose params are a number", request({ params: 5 }), -32_602, 5],
    ["whose params are a list", request({ params: [5] }), -32_602, 5],
    ["of 20,000 values", request({ params: { x: Array.from({ length: 20_000 }, () => 0) } }), -32_600, 5],
    ["nested 2,000 deep", `{"jsonrpc":"2.0","id":5,"x":${"[".repeat(2000)}${"]".repeat(2000)}}`, -32_600, 5],
    ["of 34 MB", request({ params: { x: "x".repeat(34_000_000) } }), -32_600, 5],
  ])("a line %s is answered with an error", async (_, line, code, id) => {
    expect(await answerTo(line)).toMatchObject({ jsonrpc: "2.0", id, error: { code } });
  });
});

it("an id that JavaScript would round comes back as it was sent", async () => {
  const answered = once(answers, "line");
  child.stdin.write(`${raw("9007199254740993")}\n`);
  expect(await answered).toEqual([expect.stringMatching(/^\{"jsonrpc":"2\.0","id":9007199254740993,"error":\{/)]);
});

describe("fields that errors name", () => {
  const related = "io.modelcontextprotocol/related-task";
  const later = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" };
  const meta = (fields: object) => ({ params: { _meta: fields } });
  it.each<[string, object]>([
    ["id", { id: 1.5 }],
    ["id", { method: "notifications/progress" }],
    ["jsonrpc", { jsonrpc: "1.0" }],
    ["method", { method: null }],
    ["result, error", { result: {} }],
    ["result, error", { error: { code: 1, message: "" } }],
    ["params", { params: "x" }],
    ["params._meta", { params: { _meta: 5 } }],
    ["params._meta.progressToken", meta({ progressToken: 1.5 })],
    ["params._meta.progressToken", meta({ progressToken: {} })],
    [`params._meta["${related}"]`, meta({ [related]: { taskId: 5 } })],
    ['params._meta["io.modelcontextprotocol/clientCapabilities"]', meta(later)],
    ["params.cursor", { method: "tools/list", params: { cursor: 5 } }],
    ["params.name", { method: "tools/call", params: {} }],
    ["params.arguments", { method: "tools/call", params: { name: "x", arguments: "[" } }],
    ["params.level", { method: "logging/setLevel" }],
    ["params.protocolVersion", { method: "initialize", params: {} }],
  ])("an error names the field %s: %j", async (name, fields) => {
    const all = { params: {}, ...fields };
    const { error } = (await answerTo(request(all))) as { error: { code: number; message: string } };
    expect([-32_600, -32_602]).toContain(error.code);
    expect(error.message.replace(/^Invalid (request|params): /, "").split(": ")[0]).toBe(name);
  });
});

describe("odd lines on stdin that are accepted", () => {
  const list = (fields: object) => request({ method: "tools/list", ...fields });
  const opening = (params: object) => request({ ...INITIALIZE, id: 5, params: { ...INITIALIZE.params, ...params } });
  const call = (args: unknown) => request({ method: "tools/call", params: { name: CHECKED, arguments: args } });
  it.each([
    ["behind a byte order mark", `\uFEFF${list({})}`],
    ["between spaces that JSON does not have", `\u00A0${list({})}\u00A0`],
    ["with one more field", list({ sessionId: "x" })],
    ["with a field named __proto__", list({}).replace("{", '{"__proto__":{"x":1},')],
    ["with null for absent fields", list({ params: null, result: null, error: null })],
    ["with null in its parameters", list({ params: { cursor: null, _meta: { progressToken: null } } })],
    ["with null for _meta", list({ params: { _meta: null } })],
    ["with empty lists for empty objects", list({ params: { _meta: [] } })],
    ["with an empty list of parameters", list({ params: [] })],
    ["with null for arguments", call(null)],
    ["with arguments as text", call('{"action":"list"}')],
    ["of `initialize`, with null for an unknown field", JSON.stringify({ ...INITIALIZE, id: 5, x: null })],
    ["of `initialize`, with null for capabilities", opening({ capabilities: null })],
  ])("a line %s is accepted", async (_, line) => {
    expect(await answerTo(line)).toMatchObject({ id: 5, result: {} });
  });

  it("a notification with null for its id is accepted", async () => {
    const before = stderr.length;
    expect(await answerTo(`${request({ id: null, method: "notifications/x" })}\n${raw("6")}`)).toMatchObject({ id: 6 });
    expect(stderr.slice(before)).not.toContain("not a valid message");
  });
});

it("an invalid notification is logged, and the lines after it are answered", async () => {
  const lines = ['{"jsonrpc":"1.0","method":"a"}', '{"jsonrpc":"2.0","method":"a","params":7}', "", "  "];
  const before = stderr.length;
  expect(await answerTo([...lines, raw("6")].join("\n"))).toEqual({ jsonrpc: "2.0", id: 6, result: {} });
  const said = () => stderr.slice(before).trim().split("\n");
  while (said().length < lines.length - 2) await once(child.stderr, "data");
  const told = said();
  expect(told).toHaveLength(2);
  for (const line of told) expect(line).toContain("not a valid message");
});
