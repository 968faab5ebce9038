import { createHmac } from "node:crypto";
import * as jose from "jose";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AuthSettings } from "../../src/http/auth/authenticator.ts";
import { digestOf, newToken } from "../../src/http/auth/http-token.ts";
import { AUDIENCE, AuthSetup, Issuer, PUBLIC_URL, send } from "../kit/servers/http-auth.ts";

let setup: AuthSetup;
let issuer: Issuer;
beforeEach(async () => {
  setup = await AuthSetup.make();
  issuer = await Issuer.start();
});
afterEach(async () => {
  await issuer.close();
  await setup.close();
});

const open = async (over: Partial<AuthSettings> = {}) => setup.open({ oauth: { issuer: issuer.url }, ...over });
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds;
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("a JWT of the authorization server", () => {
  it("a JWT admits its subject until it expires, with the known scopes", async () => {
    const server = await open();
    expect(issuer.asked).toEqual([]);
    const exp = inSeconds(120);
    const token = await issuer.sign({ exp, scope: "openid run read write", aud: ["other", AUDIENCE] });
    // Adds the tolerated difference of clocks, 30 s.
    const expiresAt = (exp + 30) * 1_000;
    const ada = { caller: { principal: "ada", scopes: ["read", "run"] }, kind: "oauth", expiresAt };
    expect(await send(server, token)).toEqual(ada);
    expect(await send(server, token)).toEqual(ada);
    expect(issuer.asked).toEqual(["/.well-known/oauth-authorization-server", "/keys"]);
  });

  it.each<[string, Record<string, unknown>, string[]]>([
    ["scope", { scope: "admin read approve run" }, ["read", "run", "approve", "admin"]],
    ["scp as a list", { scope: undefined, scp: ["approve", "else"] }, ["approve"]],
    ["scp as a text", { scope: undefined, scp: "read approve" }, ["read", "approve"]],
    ["scope and scp", { scope: "read", scp: ["run"] }, ["read", "run"]],
    ["neither scope nor scp", { scope: undefined }, []],
    ["words that only begin like known scopes", { scope: "reader run:all Admin" }, []],
    ["values that are not text", { scope: { read: true }, scp: [1, null] }, []],
  ])("a JWT gives the scopes of %s", async (_, claims, scopes) => {
    expect(await send(await open(), await issuer.sign(claims))).toMatchObject({ caller: { principal: "ada", scopes } });
  });

  it.each(["RS256", "PS256", "ES384", "EdDSA"])("a JWT may be signed with %s", async (alg) => {
    issuer.keys = [await Issuer.pair("only", alg)];
    await issuer.publish();
    expect(await send(await open(), await issuer.sign())).toMatchObject({ kind: "oauth" });
  });

  it.each(["JWT", "jwt", "application/at+jwt", "AT+JWT"])("a JWT may have the type %s", async (typ) => {
    expect(await send(await open(), await issuer.sign({}, { typ }))).toMatchObject({ kind: "oauth" });
  });

  it("a JWT gives a named principal at most the scopes that the operator configured", async () => {
    const server = await open({ principals: { ada: { scopes: ["read", "approve"] } } });
    const everything = { scope: "read run approve admin" };
    expect(await send(server, await issuer.sign(everything))).toMatchObject({
      caller: { scopes: ["read", "approve"] },
    });
    const grace = await issuer.sign({ ...everything, sub: "grace" });
    expect(await send(server, grace)).toMatchObject({ caller: { scopes: ["read", "run", "approve", "admin"] } });
    // Properties of `Object.prototype` name no principal.
    for (const sub of ["constructor", "__proto__", "toString"]) {
      const caller = { principal: sub, scopes: ["read", "run"] };
      expect(await send(server, await issuer.sign({ sub }))).toMatchObject({ caller });
    }
  });

  it("a JWT is accepted beside tokens of the server", async () => {
    const token = newToken();
    const sha256 = digestOf(token).toString("hex");
    const server = await open({ principals: { grace: { tokenSha256: sha256, scopes: ["read"] } } });
    expect(await send(server, token)).toMatchObject({ kind: "token", caller: { principal: "grace" } });
    expect(await send(server, server.made!.token)).toMatchObject({ kind: "token", caller: { principal: "local" } });
    expect(await send(server, await issuer.sign())).toMatchObject({ kind: "oauth" });
  });

  it("a JWT must be for the audience that the operator names", async () => {
    const server = await open({ oauth: { issuer: issuer.url, audience: "api://agents" } });
    expect(await send(server, await issuer.sign({ aud: "api://agents" }))).toMatchObject({ kind: "oauth" });
    expect(await send(server, await issuer.sign())).toMatchObject({ status: 401 });
  });

  it("a JWT is not examined without an authorization server", async () => {
    expect(await send(await setup.open(), await issuer.sign())).toMatchObject({
      status: 401,
      body: { message: expect.stringMatching(/^This server does not know the token/) },
    });
    expect(issuer.asked).toEqual([]);
  });
});

describe("a JWT that is refused", () => {
  const claims: [string, (now: number) => Record<string, unknown>, RegExp][] = [
    ["has expired", (now) => ({ exp: now - 31 }), /^The token has expired\. Get a new one/],
    ["is not valid yet", (now) => ({ nbf: now + 60 }), /^The token is not valid yet\./],
    ["never expires", () => ({ exp: undefined }), /^The token must say when it expires \(exp\)\.$/],
    [
      "is for another audience",
      () => ({ aud: "https://other.example/mcp" }),
      /its audience \(aud\) must be http.*\/mcp\.$/,
    ],
    ["is for no audience", () => ({ aud: undefined }), /its audience \(aud\) must be/],
    ["is for the host alone", () => ({ aud: PUBLIC_URL }), /its audience \(aud\) must be/],
    [
      "is of another issuer",
      () => ({ iss: "https://evil.example" }),
      /^The token is from another issuer: iss must be http/,
    ],
    ["is of no issuer", () => ({ iss: undefined }), /^The token is from another issuer/],
    ["has no subject", () => ({ sub: undefined }), /^The token must name its subject \(sub\)\.$/],
    ["has an empty subject", () => ({ sub: "" }), /^The subject \(sub\) of the token must have 1 to 256 characters\.$/],
    ["has a long subject", () => ({ sub: "a".repeat(257) }), /must have 1 to 256 characters\.$/],
    [
      "names the operator as its subject",
      () => ({ sub: "local" }),
      /is local, which is reserved for the operator of this server\.$/,
    ],
  ];

  it.each(claims)("a JWT that %s is refused", async (_, claimsAt, message) => {
    const token = await issuer.sign(claimsAt(inSeconds(0)));
    const answer = await send(await open(), token);
    expect(answer).toMatchObject({
      status: 401,
      body: { error: "invalid_token", message: expect.stringMatching(message) },
    });
    expectNothingOf(token, answer);
  });

  it("a JWT is accepted within 30 s after its expiry", async () => {
    expect(await send(await open(), await issuer.sign({ exp: inSeconds(-20) }))).toMatchObject({ kind: "oauth" });
  });

  it("a JWT of another type is refused", async () => {
    expect(await send(await open(), await issuer.sign({}, { typ: "logout+jwt" }))).toMatchObject({
      status: 401,
      body: { message: "This is not an access token: its type (typ) must be at+jwt or JWT." },
    });
  });

  it("a JWT signed with a key that the issuer does not have is refused", async () => {
    const server = await open();
    for (const kid of ["one", "two"]) {
      const forged = await issuer.sign({}, {}, await Issuer.pair(kid));
      const answer = await send(server, forged);
      expect(answer).toMatchObject({
        status: 401,
        body: { message: expect.stringMatching(/^The token is not signed with a key of/) },
      });
      expectNothingOf(forged, answer);
    }
  });

  it("a JWT that brings its own key is refused", async () => {
    const pair = await Issuer.pair("one");
    const jwk = await jose.exportJWK(pair.publicKey);
    const header = { jwk: jwk as unknown as string, jku: `${issuer.origin}/evil` };
    expect(await send(await open(), await issuer.sign({}, header, pair))).toMatchObject({ status: 401 });
    expect(issuer.asked).not.toContain("/evil");
  });

  it("a JWT without a signature is refused", async () => {
    const [, payload = "", signature = ""] = (await issuer.sign()).split(".");
    const server = await open();
    for (const alg of ["none", "None", "NONE", ""]) {
      for (const ending of ["", signature]) {
        const token = `${base64url({ alg, typ: "at+jwt", kid: "one" })}.${payload}.${ending}`;
        expect(await send(server, token)).toMatchObject({ status: 401, body: { error: "invalid_token" } });
      }
    }
    expect(await send(server, `${base64url({ typ: "JWT" })}.${payload}.${signature}`)).toMatchObject({ status: 401 });
  });

  it("a JWT signed with the public key as a shared secret is refused", async () => {
    issuer.keys = [await Issuer.pair("one", "RS256")];
    await issuer.publish();
    const server = await open();
    const [, payload = ""] = (await issuer.sign()).split(".");
    const { publicKey } = issuer.keys[0]!;
    const secrets = [await jose.exportSPKI(publicKey), JSON.stringify(await jose.exportJWK(publicKey))];
    for (const secret of secrets) {
      const body = `${base64url({ alg: "HS256", typ: "at+jwt", kid: "one" })}.${payload}`;
      const token = `${body}.${createHmac("sha256", secret).update(body).digest("base64url")}`;
      const message = expect.stringMatching(/^The token must be signed with one of RS256, /);
      expect(await send(server, token)).toMatchObject({ status: 401, body: { message } });
    }
  });

  it("a JWT changed after signing is refused", async () => {
    const [header = "", payload = "", signature = ""] = (await issuer.sign()).split(".");
    const claimed = JSON.parse(Buffer.from(payload, "base64url").toString()) as object;
    const token = `${header}.${base64url({ ...claimed, scope: "admin" })}.${signature}`;
    expect(await send(await open(), token)).toMatchObject({ status: 401 });
  });

  it.each(["a.b.c", "a.b.", `${base64url({ alg: "ES256" })}.e30.e30`, `${base64url([])}.e30.e30`])(
    "a token that is no JWT is refused: %s",
    async (token) => {
      expect(await send(await open(), token)).toMatchObject({ status: 401, body: { error: "invalid_token" } });
    },
  );

  function expectNothingOf(token: string, answer: unknown): void {
    const said = JSON.stringify(answer) + setup.logged.join("\n");
    for (const part of [...token.split("."), "evil", "other.example"]) expect(said).not.toContain(part);
  }
});
