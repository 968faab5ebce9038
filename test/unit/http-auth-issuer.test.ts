import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AuthSettings } from "../../src/http/auth/authenticator.ts";
import { newToken } from "../../src/http/auth/http-token.ts";
import { AUDIENCE, AuthSetup, Issuer, sendHeaders, PUBLIC_URL, readRefusal, send } from "../kit/servers/http-auth.ts";

let setup: AuthSetup;
let issuer: Issuer;
beforeEach(async () => {
  setup = await AuthSetup.make();
  issuer = await Issuer.start();
});
afterEach(async () => {
  vi.useRealTimers();
  await issuer.close();
  await setup.close();
});

const open = async (over: Partial<AuthSettings> = {}) => setup.open({ oauth: { issuer: issuer.url }, ...over });
const METADATA = `${PUBLIC_URL}/.well-known/oauth-protected-resource/mcp`;

describe("the keys of the issuer", () => {
  it("the keys of the issuer are fetched again for a new key, but not for each unknown one", async () => {
    let now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now });
    const server = await open();
    expect(await send(server, await issuer.sign())).toMatchObject({ kind: "oauth" });
    issuer.keys = [await Issuer.pair("two")];
    await issuer.publish();
    vi.setSystemTime((now += 31_000));
    expect(await send(server, await issuer.sign())).toMatchObject({ kind: "oauth" });
    expect(issuer.asked.filter((path) => path === "/keys")).toHaveLength(2);
    const unknown = await issuer.sign({}, {}, await Issuer.pair("three"));
    for (let i = 0; i < 5; i++) expect(await send(server, unknown)).toMatchObject({ status: 401 });
    expect(issuer.asked.filter((path) => path === "/keys")).toHaveLength(2);
  });

  it("known keys stay in use while the issuer does not answer, and a token with another key gets a 503", async () => {
    let now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now });
    const server = await open();
    const good = await issuer.sign();
    expect(await send(server, good)).toMatchObject({ kind: "oauth" });
    issuer.answers.set("/keys", () => 500);
    vi.setSystemTime((now += 31_000));
    expect(await send(server, await issuer.sign({}, {}, await Issuer.pair("new")))).toMatchObject({ status: 503 });
    expect(await send(server, good)).toMatchObject({ kind: "oauth" });
  });

  it.each<[string, () => void]>([
    ["the answer for metadata is an error", () => issuer.answers.clear()],
    ["metadata is of another issuer", () => metadata({ issuer: "https://evil.example", jwks_uri: issuer.jwks })],
    ["metadata names no keys", () => metadata({ issuer: issuer.url })],
    ["metadata names keys over plain HTTP", () => metadata({ issuer: issuer.url, jwks_uri: "http://192.0.2.1/keys" })],
    ["the answer for keys is an error", () => issuer.answers.set("/keys", () => 503)],
    ["the answer has no keys", () => issuer.answers.set("/keys", () => ({ error: "busy" }))],
  ])("a token gets a 503 while %s, and is accepted once the keys can be fetched again", async (_, spoil) => {
    let now = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now });
    const before = new Map(issuer.answers);
    const server = await open();
    spoil();
    const token = await issuer.sign();
    const response = await server.authenticate(
      new Request(AUDIENCE, { headers: { authorization: `Bearer ${token}` } }),
    );
    expect(response).toHaveProperty("status", 503);
    expect((response as Response).headers.get("retry-after")).toBe("5");
    expect(await readRefusal(response as Response)).toMatchObject({
      challenge: null,
      body: {
        error: "temporarily_unavailable",
        message: expect.stringMatching(/Try again soon with the same token\.$/),
      },
    });
    const line = expect.stringMatching(/^the keys of the OAuth issuer are not available \{"issuer":"http/);
    expect(setup.logged).toEqual([line]);
    expect(setup.logged.join("")).not.toContain(token);
    for (const [path, answer] of before) issuer.answers.set(path, answer);
    vi.setSystemTime((now += 5_000));
    expect(await send(server, token)).toMatchObject({ kind: "oauth" });
  });

  it("keys are fetched once for any number of tokens while the issuer does not answer", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    issuer.answers.set("/keys", () => 500);
    const server = await open();
    const token = await issuer.sign();
    const together = await Promise.all([send(server, token), send(server, token), send(server, token)]);
    for (const answer of [...together, await send(server, token)]) expect(answer).toMatchObject({ status: 503 });
    expect(issuer.asked).toEqual(["/.well-known/oauth-authorization-server", "/keys"]);
    expect(setup.logged).toHaveLength(1);
  });

  it("a JWT gets a 503 while the issuer is down, and tokens of the server still work", async () => {
    const token = await issuer.sign();
    const server = await open();
    await issuer.close();
    expect(await send(server, token)).toMatchObject({ status: 503 });
    expect(setup.logged.join("")).toContain("ECONNREFUSED");
    expect(await send(server, server.made!.token)).toMatchObject({ kind: "token" });
    issuer = await Issuer.start();
  });

  it("no metadata is fetched if the operator gives the URL of the keys", async () => {
    const server = await open({ oauth: { issuer: issuer.url, jwks: issuer.jwks } });
    expect(await send(server, await issuer.sign())).toMatchObject({ kind: "oauth" });
    expect(issuer.asked).toEqual(["/keys"]);
  });

  it.each([
    "/.well-known/oauth-authorization-server/tenant",
    "/.well-known/openid-configuration/tenant",
    "/tenant/.well-known/openid-configuration",
  ])("the keys are found by the metadata at %s", async (discovery) => {
    await issuer.close();
    issuer = await Issuer.start("/tenant", discovery);
    expect(await send(await open(), await issuer.sign())).toMatchObject({ kind: "oauth" });
  });

  function metadata(answer: object): void {
    issuer.answers.set("/.well-known/oauth-authorization-server", () => answer);
  }
});

describe("a client that looks for the authorization server", () => {
  it("a 401 or 403 refers the client to the authorization server, with and without a token", async () => {
    const server = await open({ publicUrl: () => `${PUBLIC_URL}/` });
    const hints = `resource_metadata="${METADATA}", scope="read run approve"`;
    expect(await sendHeaders(server)).toHaveProperty("challenge", `Bearer ${hints}`);
    expect(await send(server, newToken())).toHaveProperty(
      "challenge",
      expect.stringMatching(
        /^Bearer error="invalid_token", error_description="[^"]+", resource_metadata="[^"]+", scope=/,
      ),
    );
    expect(await readRefusal(server.insufficientScope(["run", "approve"]))).toHaveProperty(
      "challenge",
      expect.stringContaining(`scope="run approve", resource_metadata="${METADATA}"`),
    );
    expect(server.protectedResourceMetadata()).toEqual({
      resource: AUDIENCE,
      resource_name: "claude-agents-mcp",
      authorization_servers: [issuer.url],
      scopes_supported: ["read", "run", "approve", "decide", "admin"],
      bearer_methods_supported: ["header"],
    });
  });

  it("a setting with a quote and a line break cannot add to the challenge of a 401", async () => {
    const server = await open({ publicUrl: () => 'https://a.example/"\r\nx-evil: 1' });
    const { challenge } = (await sendHeaders(server)) as { challenge: string };
    expect(challenge).toContain('resource_metadata="https://a.example/???x-evil: 1/.well-known');
  });
});

describe("invalid settings of OAuth", () => {
  it.each<[Partial<AuthSettings>, string]>([
    [{ oauth: { issuer: "http://login.example" } }, '--oauth: issuer is "http://login.example": must be an https URL'],
    [{ oauth: { issuer: "login.example" } }, '--oauth: issuer is "login.example": must be an https URL'],
    [
      { oauth: { issuer: "https://login.example", jwks: "file:///keys" } },
      '--oauth: jwks is "file:///keys": must be an https',
    ],
  ])("the settings %j are refused", async (over, message) => {
    expect(await setup.refusal(over)).toContain(message);
  });
});
