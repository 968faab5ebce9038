import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { afterEach, describe, expect, it } from "vitest";
import { isPublicAddress } from "../../src/security/public-address.ts";
import { send, type Attempt, type OutgoingMessage, type SendOptions } from "../../src/webhooks/send.ts";

const KEY = Buffer.from("a key of the tests, 32 bytes xx.");

/** Receivers that a test has started. */
const servers = new Set<ReturnType<typeof createServer>>();
afterEach(async () => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  }
  servers.clear();
});

/** Starts a receiver on loopback. Returns its port. */
async function receive(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  servers.add(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const never = new AbortController().signal;

async function sendTo(url: string, over: Partial<OutgoingMessage & SendOptions> = {}): Promise<Attempt> {
  const { readsBody, resolve, signal = never, timeoutMs = 5_000, ...message } = over;
  const more = { ...(readsBody !== undefined && { readsBody }), ...(resolve && { resolve }) };
  const whole = { url, keys: [KEY], id: "msg_1", body: "{}", reach: "any", ...message } as const;
  return send(whole, { signal, timeoutMs, ...more });
}

const loopback = async () => Promise.resolve([{ address: "127.0.0.1", family: 4 }]);

describe("a request to a webhook", () => {
  it("a request to a webhook is a signed POST with the headers of the message", async () => {
    const bodies: unknown[] = [];
    const port = await receive((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => (text += chunk.toString()));
      request.on("end", () => {
        bodies.push(new Webhook(`whsec_${KEY.toString("base64")}`).verify(text, request.headers as never));
        response.writeHead(request.headers["x-mcp-subscription-id"] === "sub_1" ? 204 : 400).end();
      });
    });
    const headers = { "X-MCP-Subscription-Id": "sub_1" };
    const url = `http://127.0.0.1:${String(port)}/hook`;
    await expect(sendTo(url, { headers, body: '{"a":"ü"}' })).resolves.toEqual({
      fault: undefined,
      status: 204,
      answer: "status 204",
      retryAfterMs: undefined,
    });
    expect(bodies).toEqual([{ a: "ü" }]);
  });

  it("a redirect of a webhook is a failure and is not followed", async () => {
    const paths: unknown[] = [];
    const port = await receive((request, response) => {
      paths.push(request.url);
      response.writeHead(307, { location: "/other" }).end();
    });
    const sent = await sendTo(`http://127.0.0.1:${String(port)}/hook`);
    expect(sent).toMatchObject({ fault: "http_4xx", answer: "status 307" });
    expect(paths).toEqual(["/hook"]);
  });

  it("an endless response of a webhook is cut off after 8,192 bytes, or at once if nobody reads it", async () => {
    const cut: Promise<unknown>[] = [];
    const port = await receive((_, response) => {
      cut.push(once(response, "close"));
      response.writeHead(200);
      const pour = () => {
        while (!response.destroyed && response.write("x".repeat(1_024)));
      };
      response.on("drain", pour);
      pour();
    });
    const url = `http://127.0.0.1:${String(port)}/`;
    const read = await sendTo(url, { readsBody: true });
    expect(read.text).toHaveLength(8_192);
    await expect(sendTo(url)).resolves.toMatchObject({ fault: undefined, status: 200 });
    await Promise.all(cut);
  });

  it("a webhook that does not answer, drips its answer or resolves slowly is given up at the time limit", async () => {
    const port = await receive((request, response) => {
      if (request.url === "/drip") response.writeHead(200).write("{");
    });
    const url = `http://127.0.0.1:${String(port)}`;
    const late = { fault: "timeout", answer: "no answer in time" };
    await expect(sendTo(`${url}/silent`, { timeoutMs: 50 })).resolves.toEqual(late);
    await expect(sendTo(`${url}/drip`, { timeoutMs: 50, readsBody: true })).resolves.toEqual(late);
    const resolve = async () => new Promise<never>(() => undefined);
    await expect(sendTo("http://slow.invalid/", { timeoutMs: 50, resolve })).resolves.toEqual(late);
  });

  it("a failed request to a webhook is described by a code, without address and URL", async () => {
    const port = await receive(() => undefined);
    for (const server of servers) server.close();
    const url = `http://127.0.0.1:${String(port)}/secret`;
    await expect(sendTo(url)).resolves.toEqual({ fault: "connection_refused", answer: "ECONNREFUSED" });
    const plain = await receive((_, response) => response.end());
    const secure = await sendTo(`https://127.0.0.1:${String(plain)}/`);
    expect(secure).toMatchObject({ fault: "tls_error" });
  });
});

describe("the address of a webhook", () => {
  it.each([
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1]/",
    "https://[fd00::1]/",
    "https://169.254.169.254/latest/meta-data/",
  ])("a request to %s is refused for a URL that a client has named", async (url) => {
    const refused = { fault: "connection_refused", answer: "no permitted address" };
    await expect(sendTo(url, { reach: "public" })).resolves.toEqual(refused);
  });

  it("a name with private addresses only is refused, though `any` may reach them, and is resolved once each time", async () => {
    const asked: string[] = [];
    const port = await receive((_, response) => response.end());
    const resolve = async (name: string) => {
      asked.push(name);
      return Promise.resolve([
        { address: "127.0.0.1", family: 4 },
        { address: "10.0.0.1", family: 4 },
        { address: "::1", family: 6 },
      ]);
    };
    const url = `http://two.example:${String(port)}/`;
    await expect(sendTo(url, { reach: "public", resolve })).resolves.toMatchObject({ answer: "no permitted address" });
    await expect(sendTo(url, { reach: "any", resolve })).resolves.toMatchObject({ status: 200 });
    expect(asked).toEqual(["two.example", "two.example"]);
  });

  it("a name is resolved once for a request, and the connection uses the checked address", async () => {
    const hosts: unknown[] = [];
    const port = await receive((request, response) => {
      hosts.push(request.headers.host);
      response.end();
    });
    let asked = 0;
    // Nobody but this look-up knows the name, so that a second one would fail.
    const resolve = async () => ((asked += 1), loopback());
    await expect(sendTo(`http://pinned.invalid:${String(port)}/`, { resolve })).resolves.toMatchObject({ status: 200 });
    expect([asked, hosts]).toEqual([1, [`pinned.invalid:${String(port)}`]]);
  });

  it("addresses of the public internet are told from all special ones", () => {
    const open = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::200e"];
    const closed =
      "0.0.0.0 10.255.0.1 100.64.0.1 127.1.2.3 169.254.169.254 172.31.0.1 192.0.0.8 192.0.2.1 192.88.99.1 192.168.0.1 " +
      "198.19.0.1 198.51.100.1 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::ffff:8.8.8.8 " +
      "::8.8.8.8 64:ff9b::808:808 64:ff9b:1::1 100::1 2001::1 2001:20::1 2001:db8::1 2002:808:808::1 3fff::1 5f00::1 " +
      "fc00::1 fd12::1 fe80::1 fe80::1%1 2606:4700::1111%1 fec0::1 ff02::1 example.com";
    expect(open.filter((address) => !isPublicAddress(address))).toEqual([]);
    expect(closed.split(" ").filter((address) => isPublicAddress(address))).toEqual([]);
  });
});
