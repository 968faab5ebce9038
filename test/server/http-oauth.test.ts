import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { Issuer } from "../kit/servers/http-auth.ts";
import { frames, INITIALIZE, post, type HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Tokens of an authorization server at the built server. */

const world = useWorld({ agent: "stand-in" });
let issuer: Issuer;
let server: HttpServer;
let auditLog: string;
beforeAll(async () => {
  issuer = await Issuer.start();
  auditLog = join(world.folder(), "audit.jsonl");
  server = await world.http({
    args: ["--oauth", JSON.stringify({ issuer: issuer.url }), "--allow-dir", "/", "--audit-log", auditLog],
  });
});
afterAll(async () => {
  await issuer.close();
});

/** Returns a valid token for this server, with `claims` replaced. */
const sign = async (claims: Record<string, unknown> = {}) => issuer.sign({ aud: server.url, ...claims });
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;
const knock = async (token: string, body: unknown = INITIALIZE) =>
  server.fetch("/mcp", post(body, { authorization: `Bearer ${token}` }));
const metadata = () => `resource_metadata="${server.origin}/.well-known/oauth-protected-resource/mcp"`;

describe("a JWT of the issuer", () => {
  it("a JWT lets its subject in, and no other user sees the subject's sessions", async () => {
    const ada = await server.connect("modern", await sign());
    const start = { prompt: scriptTag([{ text: "for ada" }]), cwd: world.folder(), waitMs: 40_000 };
    const { result, sessionId } = await ada.call("claude_code", start);
    expect(result?.result).toBe("for ada");
    const get = { action: "get", sessionId };
    const again = await server.connect("legacy", await sign({ scope: "read" }));
    expect((await again.call("claude_code_session", get)).sessions).toMatchObject([{ sessionId }]);
    const bob = await server.connect("v1", await sign({ sub: "bob" }));
    expect(await bob.refusal("claude_code_session", get)).toMatchObject({ code: "SESSION_NOT_FOUND" });
    const operator = await server.connect();
    expect(await operator.refusal("claude_code_session", get)).toMatchObject({ code: "SESSION_NOT_FOUND" });
  });

  it("a JWT with too few scopes is answered with the scopes that the tool needs, and nothing is done", async () => {
    const call = (name: string, args: object) => ({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name, arguments: args },
    });
    const asText = (name: string, args: object) => ({
      ...call(name, {}),
      params: { name, arguments: JSON.stringify(args) },
    });
    const token = await sign({ sub: "eve", scope: "read" });
    const decision = { action: "respond_permission", sessionId: "x", requestId: "x", decision: "allow" };
    for (const [scope, body] of [
      ["run", call("claude_code", { prompt: "x", cwd: world.folder() })],
      ["approve", call("claude_code_check", decision)],
      ["run", call("claude_code_session", { action: "delete", sessionId: "x" })],
      ["run", asText("claude_code_session", { action: "delete", sessionId: "x" })],
    ] as const) {
      const refused = await knock(token, body);
      expect(refused.status).toBe(403);
      const challenge = refused.headers.get("www-authenticate") ?? "";
      expect(challenge).toMatch(/^Bearer error="insufficient_scope", /);
      expect(challenge).toContain(`scope="${scope}"`);
      expect(challenge).toContain(metadata());
      expect(await refused.json()).toMatchObject({ error: "insufficient_scope" });
      const [last = ""] = readFileSync(auditLog, "utf8").trim().split("\n").slice(-1);
      expect(JSON.parse(last)).toMatchObject({ principal: "eve", tool: "http", outcome: "scope" });
    }
    const reading = await server.connect("modern", token);
    expect((await reading.call("claude_code_session", { action: "list" })).sessions).toEqual([]);
    const nothing = await knock(await sign({ scope: "openid profile" }));
    expect(nothing.status).toBe(403);
    expect(nothing.headers.get("www-authenticate")).toContain('scope="read"');
  });

  it("a client finds the metadata of the authorization server from the first refusal", async () => {
    const refused = await fetch(server.url, post(INITIALIZE));
    expect(refused.status).toBe(401);
    const challenge = refused.headers.get("www-authenticate") ?? "";
    expect(challenge).toContain(metadata());
    const [, address = ""] = /resource_metadata="([^"]+)"/.exec(challenge) ?? [];
    for (const url of [address, `${server.origin}/.well-known/oauth-protected-resource`]) {
      const answer = await fetch(url);
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({
        resource: server.url,
        authorization_servers: [issuer.url],
        scopes_supported: ["read", "run", "approve", "decide", "admin"],
        bearer_methods_supported: ["header"],
      });
    }
    const without = await world.http();
    expect((await fetch(`${without.origin}/.well-known/oauth-protected-resource/mcp`)).status).toBe(404);
  });

  it("an expired JWT closes the stream that it opened", async () => {
    // Clocks may differ by 30 s: a token and its streams stay valid until 30 s after `exp`.
    const token = await sign({ exp: inSeconds(-27) });
    const begun = await knock(token);
    expect(begun.status).toBe(200);
    await begun.text();
    const headers = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "", accept: "text/event-stream" };
    const open = async (bearer: string) =>
      server.fetch("/mcp", { headers: { ...headers, authorization: `Bearer ${bearer}` } });
    const stream = await open(token);
    expect(stream.status).toBe(200);
    const heard = async () => {
      for await (const frame of frames(stream)) expect(frame.message?.id).toBeUndefined();
    };
    await expect(heard()).rejects.toThrow("terminated");
    // The protocol session still belongs to the subject, whose next token continues the session.
    const next = await open(await sign());
    expect(next.status).toBe(200);
    await next.body?.cancel();
  });
});

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
const claims = () => ({ iss: issuer.url, aud: server.url, sub: "ada", scope: "read run", exp: inSeconds(300) });

/** Signs with public knowledge: the issuer's public key, taken for an HMAC secret. */
async function withPublicKey(): Promise<string> {
  const signed = `${encoded({ alg: "HS256", typ: "at+jwt", kid: "one" })}.${encoded(claims())}`;
  const keys = await (await fetch(issuer.jwks)).text();
  return `${signed}.${createHmac("sha256", keys).update(signed).digest("base64url")}`;
}

describe("JWTs that are refused", () => {
  it.each<[string, () => Promise<string>, string]>([
    ["expired", async () => sign({ exp: inSeconds(-120) }), "expired"],
    ["for another server", async () => sign({ aud: "https://other.example/mcp" }), "audience"],
    ["for a longer URL of this server", async () => sign({ aud: `${server.url}/more` }), "audience"],
    ["of another issuer", async () => sign({ iss: "https://evil.example" }), "issuer"],
    ["without an expiry", async () => sign({ exp: undefined }), "expires"],
    ["for the operator", async () => sign({ sub: "local" }), "operator"],
    ["unsigned", async () => Promise.resolve(`${encoded({ alg: "none" })}.${encoded(claims())}.`), "signed"],
    ["signed with the public key", withPublicKey, "signed"],
    ["signed with an unknown key", async () => signedBy("nobody"), "signed"],
    ["signed with another key of the same name", async () => signedBy("one"), "signed"],
    ["changed", async () => changed(await sign({ scope: "read" })), "signed"],
    [
      "an ID token, not an access token",
      async () => issuer.sign({ aud: server.url }, { typ: "id+jwt" }),
      "access token",
    ],
  ])("a JWT is refused if it is %s", async (_, make, why) => {
    const token = await make();
    for (const path of ["/mcp", "/metrics"]) {
      const authorization = `Bearer ${token}`;
      const request = path === "/mcp" ? post(INITIALIZE, { authorization }) : { headers: { authorization } };
      const answer = await server.fetch(path, request);
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer error="invalid_token"/);
      const { message } = (await answer.json()) as { message: string };
      expect(message).toContain(why);
      expect(message).not.toContain(token);
    }
    expect(server.stderr()).not.toContain(token);
  });
});

async function signedBy(kid: string): Promise<string> {
  return issuer.sign({ aud: server.url }, {}, await Issuer.pair(kid));
}

/** Puts the signature of `token` under wider claims. */
function changed(token: string): string {
  const [head = "", , signature = ""] = token.split(".");
  return `${head}.${encoded({ ...claims(), scope: "read run approve admin" })}.${signature}`;
}
