import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { createInterface, type Interface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { INITIALIZE } from "../support/http-server.ts";

/** Every line on stdin has an answer, or a line of the log where no client could read one. */

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
const raw = (id: string): string => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`;

describe("a line on stdin is answered with an error", () => {
  it.each([
    ["that is not JSON", "hello", -32_700, null],
    ["that is half a message", '{"jsonrpc":"2.0","id":5', -32_700, null],
    ["that is a number", "5", -32_600, null],
    ["that is null", "null", -32_600, null],
    ["that is a batch", `[${raw("5")}]`, -32_600, null],
    ["with a fractional id", raw("1.5"), -32_600, null],
    ["with an id that is no safe integer", raw("9007199254740993"), -32_600, null],
    ["with an id beyond all numbers", raw("1e999"), -32_600, null],
    ["with an id of 300,000 characters", raw(`"${"y".repeat(300_000)}"`), -32_600, null],
    ["whose id is null", raw("null"), -32_600, null],
    ["whose id is an object", raw("{}"), -32_600, null],
    ["of another JSON-RPC", request({ jsonrpc: "1.0" }), -32_600, 5],
    ["without a JSON-RPC", request({ jsonrpc: undefined }), -32_600, 5],
    ["whose method is a number", request({ method: 5 }), -32_600, 5],
    ["whose params are a number", request({ params: 5 }), -32_602, 5],
    ["whose params are a list", request({ params: [5] }), -32_602, 5],
    ["of 20,000 values", request({ params: { x: Array.from({ length: 20_000 }, () => 0) } }), -32_600, 5],
    ["nested 2,000 deep", `{"jsonrpc":"2.0","id":5,"x":${"[".repeat(2000)}${"]".repeat(2000)}}`, -32_600, 5],
    ["of 34 MB", request({ params: { x: "x".repeat(34_000_000) } }), -32_600, 5],
  ])("%s", async (_, line, code, id) => {
    expect(await answerTo(line)).toMatchObject({ jsonrpc: "2.0", id, error: { code } });
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
  for (const line of told) expect(line).toContain("no message that can be taken");
});
