import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { once } from "node:events";
import { beforeAll, describe, expect, it } from "vitest";
import { INITIALIZE, post, type HttpServer } from "../kit/servers/http-server.ts";
import { processorMsOf } from "../kit/runner/processor-time.ts";
import { useWorld } from "../kit/world.ts";

/** Huge requests of one caller must not block the server, or exhaust its memory, for the others. */

const world = useWorld({ agent: "stand-in" });
let server: HttpServer;
let session: string;
beforeAll(async () => {
  server = await world.http({ args: ["--rate-limit", "150", "--allow-dir", world.folder()] });
  const began = await server.fetch("/mcp", post(INITIALIZE));
  session = began.headers.get("mcp-session-id") ?? "";
  await began.text();
});

/** Peak memory of `server` so far, bytes. */
function peakMemory(): number {
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

describe("requests with many values", () => {
  it.each([
    ["2.4 million keys", 413, () => call("claude_code_session", keys(2_400_000))],
    ["15 million zeros", 413, () => call("claude_code_session", `{"action":"list","x":[${"0,".repeat(15_000_000)}0]}`)],
    ["10 million nested lists", 400, () => call("claude_code_session", "[".repeat(10_000_000))],
    [
      "10 million zeros beside the call",
      413,
      () => `[${call("claude_code_session", "{}")},[${"0,".repeat(10_000_000)}0]]`,
    ],
  ])("a request of %s is refused before it is parsed", async (_, status, body) => {
    const answer = await send(body());
    expect(answer.status).toBe(status);
    expect(answer.text).toMatch(/more than 10000 values|more than 1000 deep/);
    // Without the limit, parsing took 22 to 34 s and 3.7 GB.
    expect(answer.ms).toBeLessThan(10_000);
    expect(peakMemory()).toBeLessThan(600_000_000);
  });

  it("an error about 9,000 wrong arguments names some of them, and says that there are more problems", async () => {
    const { text } = await send(call("claude_code_session", keys(9_000)));
    expect(text).toContain("There are more problems.");
  });
});

describe("long requests", () => {
  const long = JSON.stringify("x".repeat(9_000_000));

  it.each([
    ["claude_code_session", `{"action":"get","sessionId":${long}}`],
    ["claude_code_check", `{"action":"poll","sessionId":${long}}`],
    ["no_such_tool", `{"text":${long}}`],
  ])("a long request to %s is refused, because the tool takes no attachments", async (tool, args) => {
    const { status, text } = await send(call(tool, args));
    expect(status).toBe(413);
    expect(text).toContain("calls no tool that takes attachments");
  });

  const attached = `{"prompt":"x","attachments":[{"data":${long}}]}`;
  it.each([
    ["arguments as an object", call("claude_code", attached)],
    ["arguments as JSON text", call("claude_code", JSON.stringify(attached))],
    ["null for an absent field", call("claude_code", `${attached},"_meta":null`)],
  ])("a long request to a tool with attachments reaches the tool: %s", async (_, body) => {
    const { status, text } = await send(body);
    expect(status).toBe(200);
    expect(text).toContain("attachments");
  });

  it("a request without a token gets 401 before its body is read", async () => {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname).setEncoding("utf8");
    const head = ["POST /mcp HTTP/1.1", `Host: ${hostname}:${port}`, "Content-Type: application/json"];
    socket.write(`${[...head, "Transfer-Encoding: chunked"].join("\r\n")}\r\n\r\n5\r\n{"x":\r\n`);
    const [text] = (await once(socket, "data")) as [string];
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  });
});

it("each request of a batch counts against the rate limit", async () => {
  const batch = Array.from({ length: 100 }, (_, id) => call("claude_code_session", '{"action":"list"}', id));
  const answers = [await send(`[${batch.join(",")}]`), await send(`[${batch.join(",")}]`)];
  expect(answers.at(-1)?.status).toBe(429);
  expect(answers.at(-1)?.text).toContain("More than 150 requests in a minute");
});
