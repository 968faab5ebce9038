import { connect as connectSocket, type Socket } from "node:net";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { request, type IncomingMessage } from "node:http";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { INITIALIZE, post, startHttp, type HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Attacks on the HTTP endpoint, all of which must fail. */

const world = useWorld({ agent: "stand-in" });

/** Sends with `request` of `node:http`, because `fetch` cannot set the Host header. */
async function raw(
  server: HttpServer,
  headers: Record<string, string>,
  body: string | undefined = JSON.stringify(INITIALIZE),
  path?: string,
) {
  const own = { authorization: `Bearer ${server.token}`, accept: "application/json, text/event-stream" };
  const sent = request(path === undefined ? server.url : new URL(path, server.url), {
    method: path === undefined ? "POST" : "GET",
    headers: { ...own, "content-type": "application/json", ...headers },
  });
  sent.end(path === undefined ? body : undefined);
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) {
    text += String(chunk);
    if (answer.statusCode === 200) break;
  }
  answer.destroy();
  return { status: answer.statusCode, text, headers: answer.headers };
}

/** Resolves when `socket` closes. Counts a reset too, at which `once` would reject. */
const whenClosed = async (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.on("error", () => undefined).once("close", () => resolve());
  });

describe("the HTTP endpoint", () => {
  let server: HttpServer;
  beforeAll(async () => {
    server = await world.http({ args: ["--allow-host", "10.42.0.8"], env: constants({ maxBodyBytes: 65_536 }) });
  });

  it.each([
    ["no token", {}],
    ["a wrong token", { authorization: "Bearer ccm_wrong-wrong-wrong-wrong-wrong-wrong" }],
    ["half a token", { authorization: "Bearer ccm_of-the-operator" }],
    ["a token as a password", { authorization: `Basic ${Buffer.from("local:ccm_x").toString("base64")}` }],
    ["an unsigned JWT", { authorization: "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJsb2NhbCJ9." }],
  ])("a request with %s gets 401 at /mcp and at /metrics", async (_, headers) => {
    for (const path of ["/mcp", "/metrics"]) {
      const method = path === "/mcp" ? "POST" : "GET";
      const answer = await fetch(new URL(path, server.url), {
        ...post(INITIALIZE, headers),
        method,
        body: method === "GET" ? null : "{}",
      });
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
      expect(await answer.text()).not.toContain("at ");
    }
    const inTheUrl = await fetch(`${server.url}?token=${server.token}&access_token=${server.token}`, post(INITIALIZE));
    expect(inTheUrl.status).toBe(401);
  });

  it("a host name of a third party that resolves to the server is refused (DNS rebinding)", async () => {
    for (const host of ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80"]) {
      expect(await raw(server, { host })).toMatchObject({ status: 403 });
    }
    expect((await raw(server, { host: `localhost:${new URL(server.url).port}` })).status).toBe(200);
  });

  it("probes are answered under any host, such as the address of a pod; metrics need --allow-host", async () => {
    const by = async (host: string, path: string) => raw(server, { host }, "", path);
    for (const path of ["/healthz", "/readyz"]) expect((await by("10.42.0.7:7465", path)).status).toBe(200);
    for (const path of ["/metrics", "/healthz/x", "/console/"])
      expect(await by("10.42.0.7:7465", path)).toMatchObject({
        status: 403,
        text: expect.stringContaining("unknown_host") as string,
      });
    expect((await by("10.42.0.8:7465", "/metrics")).status).toBe(200);
  });

  it("an oversized body, oversized headers and invalid JSON are each refused, and the next request is served", async () => {
    expect((await raw(server, {}, `{"x":"${"x".repeat(70_000)}"}`)).status).toBe(413);
    const inParts = await raw(server, { "transfer-encoding": "chunked" }, `{"x":"${"x".repeat(70_000)}"}`);
    expect(inParts.status).toBe(413);
    expect((await raw(server, { "x-bomb": "x".repeat(20_000) })).status).toBe(431);
    expect((await raw(server, {}, "{")).status).toBe(400);
    expect((await raw(server, {}, "[".repeat(60_000))).status).toBe(400);
    const nested = `${'{"params":'.repeat(5_000)}1${"}".repeat(5_000)}`;
    expect((await raw(server, {}, nested)).status).toBe(400);
    const deep = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"claude_code","arguments":{"prompt":${"[".repeat(9_000)}${"]".repeat(9_000)}}}}`;
    expect((await raw(server, {}, deep)).status).toBe(400);
    expect((await raw(server, {})).status).toBe(200);
  });

  it("an unknown path and an unknown method are refused at once", async () => {
    expect((await server.fetch("/nothing")).status).toBe(404);
    expect((await server.fetch("/mcp/../metrics/../../etc/passwd")).status).toBe(404);
    expect((await server.fetch("/mcp", { method: "PUT", body: "{}" })).status).toBe(405);
  });
});

describe("an HTTP endpoint without tokens", () => {
  let server: HttpServer;
  beforeAll(async () => {
    server = await world.http({ args: ["--no-auth", "--allow-origin", "https://inspector.example"] });
  });

  it("a page of another site can do nothing, with any type of body", async () => {
    const anonymous = { authorization: "" };
    for (const origin of [
      "https://evil.example",
      "null",
      "http://localhost:1",
      server.origin.replace("http:", "https:").replace("127.0.0.1", "evil.127.0.0.1"),
    ]) {
      const answer = await raw(server, { ...anonymous, origin });
      expect(answer.status).toBe(403);
      expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""]) {
      expect(await raw(server, { ...anonymous, "content-type": type })).toMatchObject({ status: 415 });
    }
    const named = await raw(server, { ...anonymous, origin: "https://inspector.example" });
    expect(named).toMatchObject({
      status: 200,
      headers: {
        "access-control-allow-origin": "https://inspector.example",
        "access-control-expose-headers": "Mcp-Session-Id,WWW-Authenticate,Retry-After",
      },
    });
    const asked = await fetch(server.url, {
      method: "OPTIONS",
      headers: { origin: "https://evil.example", "access-control-request-method": "POST" },
    });
    expect(asked.status).toBe(403);
  });

  it("a page of another site or port cannot load the console as image, frame or script; a link opens the console", async () => {
    const status = async (path: string, headers: Record<string, string>) => {
      const sent = request(new URL(path, server.url), { headers });
      sent.end();
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      answer.destroy();
      return answer.statusCode;
    };
    for (const site of ["cross-site", "same-site"]) {
      for (const dest of ["empty", "image", "iframe", "script"]) {
        const headers = { "sec-fetch-site": site, "sec-fetch-dest": dest };
        expect([dest, await status("/console/api/live", headers)]).toEqual([dest, 403]);
        expect([dest, await status("/console/", headers)]).toEqual([dest, 403]);
      }
      expect(await status("/console/", { "sec-fetch-site": site, "sec-fetch-dest": "document" })).toBe(200);
    }
    for (const site of ["same-origin", "none"])
      expect(await status("/console/api/me", { "sec-fetch-site": site, "sec-fetch-dest": "empty" })).toBe(200);
  });
});

describe("an HTTP endpoint with short time limits", () => {
  let server: HttpServer;
  beforeAll(async () => {
    server = await world.http({ env: constants({ receiveMs: 800, sendMs: 500 }) });
  });

  it("a request that arrives byte by byte is cut off (slow loris)", async () => {
    const { hostname, port } = new URL(server.url);
    const drip = async (begin: string): Promise<string> => {
      const socket: Socket = connectSocket(Number(port), hostname);
      let heard = "";
      socket.setEncoding("utf8").on("data", (text: string) => (heard += text));
      const closed = whenClosed(socket);
      socket.write(begin);
      const timer = setInterval(() => socket.write("x"), 50);
      await closed;
      clearInterval(timer);
      return heard;
    };
    const head = `POST /mcp HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${server.token}\r\nContent-Type: application/json\r\n`;
    const [headers, body] = await Promise.all([drip(`${head}X-Slow: `), drip(`${head}Content-Length: 60000\r\n\r\n`)]);
    // A byte sent to the closed connection resets the connection and discards the answer.
    for (const heard of [headers, body]) expect(heard === "" || heard.includes("408")).toBe(true);
    expect((await server.fetch("/healthz")).status).toBe(200);
  });

  it("a client that does not read is cut off, and other clients get their whole answers", async () => {
    const client = await server.connect();
    const { sessionId } = await client.call("claude_code", {
      prompt: scriptTag([{ text: "x".repeat(200_000) }]),
      cwd: world.folder(),
      waitMs: 40_000,
    });
    const poll = { action: "poll", sessionId, cursor: 1, waitMs: 0, maxBytes: 262_144, responseMode: "full" };
    const begun = await server.fetch("/mcp", post(INITIALIZE));
    await begun.text();
    const id = begun.headers.get("mcp-session-id") ?? "";
    const { hostname, port } = new URL(server.url);
    const socket = connectSocket(Number(port), hostname);
    socket.pause();
    const closed = whenClosed(socket);
    for (let call = 1; call <= 60; call++) {
      const body = JSON.stringify({
        jsonrpc: "2.0",
        id: call,
        method: "tools/call",
        params: { name: "claude_code_check", arguments: poll },
      });
      socket.write(
        `POST /mcp HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${server.token}\r\nMcp-Session-Id: ${id}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${String(Buffer.byteLength(body))}\r\n\r\n${body}`,
      );
    }
    await server.logged("cut off");
    socket.destroy();
    await closed;
    expect((await client.end(sessionId)).status).toBe("idle");
  });
});

describe("limits and addresses of an HTTP endpoint", () => {
  let server: HttpServer;
  afterEach(async () => world.closeServers());

  it("requests beyond --rate-limit get 429, counted for each principal", async () => {
    const sha = "a".repeat(64);
    const principals = JSON.stringify({ other: { tokenSha256: sha, allowDirs: "any" } });
    server = await world.http({ args: ["--rate-limit", "20", "--principals", principals] });
    const statuses = await Promise.all(Array.from({ length: 25 }, async () => (await server.fetch("/metrics")).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(20);
    const late = await server.fetch("/metrics");
    expect(late.status).toBe(429);
    expect(Number(late.headers.get("retry-after"))).toBeGreaterThan(0);
    const strangers = await Promise.all(
      Array.from({ length: 5 }, async () => (await fetch(server.url, post(INITIALIZE))).status),
    );
    expect(strangers.filter((status) => status === 401)).toHaveLength(2);
    expect(strangers.filter((status) => status === 429)).toHaveLength(3);
    expect((await server.fetch("/healthz")).status).toBe(200);
  });

  it("open requests beyond the limit get 429 until an open request has ended", async () => {
    server = await world.http({ env: constants({ maxStreams: 2 }) });
    const begun = await server.fetch("/mcp", post(INITIALIZE));
    await begun.text();
    const headers = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "", accept: "text/event-stream" };
    const gone = new AbortController();
    const open = await server.fetch("/mcp", { headers, signal: gone.signal });
    const other = await server.fetch("/mcp", post(INITIALIZE));
    const otherId = other.headers.get("mcp-session-id") ?? "";
    await other.text();
    const second = await server.fetch("/mcp", {
      headers: { ...headers, "mcp-session-id": otherId },
      signal: gone.signal,
    });
    expect([open.status, second.status]).toEqual([200, 200]);
    expect((await server.fetch("/mcp", post(INITIALIZE))).status).toBe(429);
    gone.abort();
    await expect.poll(async () => (await server.fetch("/mcp", post(INITIALIZE))).status).toBe(200);
  });

  it("a server on all addresses, as in a container, logs the URL for clients and refuses other host names", async () => {
    const state = world.folder();
    const env = { HOME: state, XDG_STATE_HOME: state };
    const everywhere = await startHttp({ args: ["--http", "0.0.0.0:0"], env, token: "" });
    try {
      await everywhere.logged("More: docs/http.md");
      const { port } = new URL(everywhere.url);
      const [, url = ""] = /--transport http claude-agents-mcp (\S+)/.exec(everywhere.stderr()) ?? [];
      expect(url).toBe(`http://localhost:${port}/mcp`);
      const token = readFileSync(join(state, "claude-agents-mcp", "http-token"), "utf8").trim();
      const headers = { authorization: `Bearer ${token}` };
      expect((await fetch(url, post(INITIALIZE, headers))).status).toBe(200);
      expect((await raw({ ...everywhere, token }, { host: `elsewhere:${port}` })).status).toBe(403);
    } finally {
      await everywhere.close();
    }
  });
});
