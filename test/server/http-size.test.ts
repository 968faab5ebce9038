import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { once } from "node:events";
import { beforeAll, describe, expect, it } from "vitest";
import { INITIALIZE, post, type HttpServer } from "../kit/servers/http-server.ts";
import { processorMsOf } from "../kit/runner/processor-time.ts";
import { useWorld } from "../kit/world.ts";

/** Requests of a caller with scope `read` do not block the server for others. */

const world = useWorld({ agent: "stand-in" });
let server: HttpServer;
let session: string;
beforeAll(async () => {
  server = await world.http({ args: ["--rate-limit", "150", "--allow-dir", world.folder()] });
  const began = await server.fetch("/mcp", post(INITIALIZE));
  session = began.headers.get("mcp-session-id") ?? "";
  await began.text();
});

/** Peak memory of the server so far, bytes. */
function peak(): number {
  const [, kilobytes = ""] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${String(server.pid)}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

const call = (name: string, args: string, id = 7): string =>
  `{"jsonrpc":"2.0","id":${String(id)},"method":"tools/call","params":{"name":"${name}","arguments":${args}}}`;

async function send(body: string): Promise<{ status: number; text: string; ms: number }> {
  const before = processorMsOf(server.pid);
  const answer = await server.fetch("/mcp", post(body, { "mcp-session-id": session }));
  const text = await answer.text();
  return { status: answer.status, text, ms: processorMsOf(server.pid) - before };
}

const keys = (count: number): string =>
  `{${Array.from({ length: count }, (_, index) => `"k${String(index)}":0`).join(",")}}`;

describe("a request of many parts", () => {
  it.each([
    ["2.4 million keys", 413, () => call("claude_code_session", keys(2_400_000))],
    ["15 million zeros", 413, () => call("claude_code_session", `{"action":"list","x":[${"0,".repeat(15_000_000)}0]}`)],
    ["10 million lists in one another", 400, () => call("claude_code_session", "[".repeat(10_000_000))],
    ["zeros beside the call", 413, () => `[${call("claude_code_session", "{}")},[${"0,".repeat(10_000_000)}0]]`],
  ])("%s is refused before it is parsed", async (_, status, body) => {
    const answer = await send(body());
    expect(answer.status).toBe(status);
    expect(answer.text).toMatch(/more than 10000 values|more than 1000 deep/);
    // Parsing it took the server 22 to 34 s and 3.7 GB.
    expect(answer.ms).toBeLessThan(10_000);
    expect(peak()).toBeLessThan(600_000_000);
  });

  it("is read up to a limit: of 9,000 wrong values twenty are examined", async () => {
    const { text } = await send(call("claude_code_session", keys(9_000)));
    expect(text).toContain("There are more problems.");
  });
});

describe("a long request", () => {
  const long = JSON.stringify("x".repeat(9_000_000));

  it.each([
    ["claude_code_session", `{"action":"get","sessionId":${long}}`],
    ["claude_code_check", `{"action":"poll","sessionId":${long}}`],
    ["no_such_tool", `{"text":${long}}`],
  ])("is taken for tools with attachments alone, not for %s", async (tool, args) => {
    const { status, text } = await send(call(tool, args));
    expect(status).toBe(413);
    expect(text).toContain("calls no tool that takes attachments");
  });

  const attached = `{"prompt":"x","attachments":[{"data":${long}}]}`;
  it.each([
    ["as it is", call("claude_code", attached)],
    ["with its arguments as one text", call("claude_code", JSON.stringify(attached))],
    ["with null for what is not there", call("claude_code", `${attached},"_meta":null`)],
  ])("of a tool with attachments goes on to the tool: %s", async (_, body) => {
    const { status, text } = await send(body);
    expect(status).toBe(200);
    expect(text).toContain("attachments");
  });

  it("without a token is not read: 401 comes before its end", async () => {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname).setEncoding("utf8");
    const head = ["POST /mcp HTTP/1.1", `Host: ${hostname}:${port}`, "Content-Type: application/json"];
    socket.write(`${[...head, "Transfer-Encoding: chunked"].join("\r\n")}\r\n\r\n5\r\n{"x":\r\n`);
    const [text] = (await once(socket, "data")) as [string];
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  });
});

it("a batch counts with each of its requests against the rate limit", async () => {
  const batch = Array.from({ length: 100 }, (_, id) => call("claude_code_session", '{"action":"list"}', id));
  const answers = [await send(`[${batch.join(",")}]`), await send(`[${batch.join(",")}]`)];
  expect(answers.at(-1)?.status).toBe(429);
  expect(answers.at(-1)?.text).toContain("More than 150 requests in a minute");
});
