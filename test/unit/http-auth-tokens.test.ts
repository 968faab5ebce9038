import { timingSafeEqual } from "node:crypto";
import { readdir } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OPERATOR as OPERATOR_CALLER } from "../../src/domain/principal.ts";
import { firstStartText } from "../../src/http/auth/authenticator.ts";
import { digestOf, findHolder, newToken } from "../../src/http/auth/http-token.ts";
import { AuthSetup, sendHeaders, PUBLIC_URL, readRefusal, send } from "../kit/servers/http-auth.ts";

const sha256 = (token: string) => digestOf(token).toString("hex");
const OPERATOR = { caller: OPERATOR_CALLER, kind: "token" };

let setup: AuthSetup;
beforeEach(async () => void (setup = await AuthSetup.make()));
afterEach(async () => setup.close());

describe("named principals", () => {
  const [first, second, other] = [newToken(), newToken(), newToken()];
  const principals = {
    ada: { tokenSha256: [sha256(first), sha256(second)], scopes: ["read", "run"] as const },
    grace: { tokenSha256: sha256(other), scopes: ["read"] as const },
    "no-token": { scopes: ["admin"] as const },
  };

  it("a named principal is admitted by each of its tokens, with its scopes", async () => {
    const server = await setup.open({ principals });
    for (const token of [first, second]) {
      expect(await send(server, token)).toEqual({
        caller: { principal: "ada", scopes: ["read", "run"] },
        kind: "token",
      });
    }
    expect(await send(server, other)).toEqual({ caller: { principal: "grace", scopes: ["read"] }, kind: "token" });
  });

  it("two principals cannot share a token", async () => {
    const same = { ...principals, eve: { tokenSha256: sha256(other), scopes: ["admin"] as const } };
    expect(await setup.refusal({ principals: same })).toBe(
      "The principals grace and eve have the same token. Give each its own.",
    );
  });

  it("the digest of a token admits no one", async () => {
    expect(await send(await setup.open({ principals }), sha256(other))).toMatchObject({ status: 401 });
  });

  it.each([0, 1, 2, undefined])("a token is compared with every digest, also after a match (%j)", (which) => {
    const tokens = [newToken(), newToken(), newToken()];
    const known = tokens.map((token, holder) => ({ digest: digestOf(token), holder }));
    const compared: unknown[] = [];
    const equal = (a: NodeJS.ArrayBufferView, b: NodeJS.ArrayBufferView) => {
      compared.push(a);
      return timingSafeEqual(a, b);
    };
    expect(findHolder(which === undefined ? "unknown" : tokens[which]!, known, equal)).toBe(which);
    expect(compared).toEqual(known.map(({ digest }) => digest));
  });
});

describe("a request without a valid token", () => {
  it("a request without a bearer token gets a 401 without an error code", async () => {
    const server = await setup.open();
    const missing = {
      status: 401,
      challenge: "Bearer",
      body: {
        error: "unauthorized",
        message: "This server needs a token: send the header `Authorization: Bearer <token>`.",
      },
    };
    expect(await sendHeaders(server)).toEqual(missing);
    expect(await sendHeaders(server, ["authorization", ""])).toEqual(missing);
    expect(await sendHeaders(server, ["authorization", "Basic YTpi"])).toEqual(missing);
    expect(await sendHeaders(server, ["x-token", server.made!.token])).toEqual(missing);
  });

  it("a token in the URL is not accepted", async () => {
    const server = await setup.open();
    const url = `${PUBLIC_URL}/mcp?access_token=${server.made!.token}`;
    expect(await server.authenticate(new Request(url))).toHaveProperty("status", 401);
  });

  it("a 401 for an unknown token says so, and does not repeat the token", async () => {
    const server = await setup.open();
    const wrong = newToken();
    const answer = await send(server, wrong);
    expect(answer).toMatchObject({ status: 401, body: { error: "invalid_token" } });
    expect(answer).toHaveProperty(
      "challenge",
      expect.stringMatching(/^Bearer error="invalid_token", error_description="This server does not know the token\./),
    );
    expect(JSON.stringify(answer)).not.toContain(wrong);
    // `near` is almost the valid token.
    for (const near of [server.made!.token.slice(0, -1), `${server.made!.token}=`, server.made!.token.toUpperCase()]) {
      expect(await send(server, near)).toMatchObject({ status: 401 });
    }
  });

  it.each<[string, (good: string) => [string, string][]]>([
    ["two headers", (good) => [auth(`Bearer ${good}`), auth(`Bearer ${good}`)]],
    ["a good token after another scheme", (good) => [auth("Basic YTpi"), auth(`Bearer ${good}`)]],
    ["two tokens", (good) => [auth(`Bearer ${good} ${good}`)]],
    ["no token", () => [auth("Bearer")]],
    ["quotes", (good) => [auth(`Bearer "${good}"`)]],
    ["parameters", (good) => [auth(`Bearer token=${good}`)]],
  ])("a request with %s in place of one token is refused", async (_, headersOf) => {
    const server = await setup.open();
    const { token } = server.made!;
    const answer = await sendHeaders(server, ...headersOf(token));
    expect(answer).toMatchObject({ status: 401 });
    expect(JSON.stringify(answer)).not.toContain(token);
  });

  it("the scheme Bearer is accepted in any case", async () => {
    const server = await setup.open();
    expect(await sendHeaders(server, auth(`bEARER   ${server.made!.token}`))).toEqual(OPERATOR);
  });

  function auth(value: string): [string, string] {
    return ["authorization", value];
  }
});

describe("--no-auth", () => {
  it.each(["127.0.0.1", "127.8.9.1", "localhost", "LocalHost", "::1", "[::1]"])(
    "--no-auth on %s makes every client the operator, and creates no token",
    async (host) => {
      const server = await setup.open({ auth: false, host });
      const operator = { caller: OPERATOR_CALLER, kind: "open" };
      expect(await sendHeaders(server)).toEqual(operator);
      expect(await send(server, "whatever")).toEqual(operator);
      expect(await readdir(setup.folder)).toEqual([]);
    },
  );

  it.each(["0.0.0.0", "::", "[::]", "192.168.1.2", "example.com", "127.0.0.1.example.com", "localhost.example.com"])(
    "--no-auth on %s is refused",
    async (host) => {
      expect(await setup.refusal({ auth: false, host })).toBe(
        `--no-auth on ${host} would let anyone who can reach it run commands here. Leave out --no-auth, or listen on 127.0.0.1.`,
      );
    },
  );
});

it("a missing scope gives a 403 that names the scope", async () => {
  const server = await setup.open();
  expect(await readRefusal(server.insufficientScope("approve"))).toEqual({
    status: 403,
    challenge:
      'Bearer error="insufficient_scope", error_description="This needs the scope approve, which the token does not have. Use one that has it.", scope="approve"',
    body: {
      error: "insufficient_scope",
      code: "PERMISSION_DENIED",
      message: "This needs the scope approve, which the token does not have. Use one that has it.",
    },
  });
  expect(server.protectedResourceMetadata()).toBeUndefined();
});

describe("the output for a new token", () => {
  const made = { file: "/state/http-token", token: "ccm_secret" };
  const url = `${PUBLIC_URL}/mcp`;

  it("the output for a new token has a command and a configuration to paste", () => {
    const text = firstStartText(made, { url, showToken: true });
    expect(text).toContain("It is in /state/http-token,");
    expect(text).toContain(
      `  claude mcp add --transport http claude-agents-mcp ${url} --header "Authorization: Bearer ccm_secret"\n`,
    );
    expect(JSON.parse(text.slice(text.indexOf("  {"), text.lastIndexOf("}") + 1))).toEqual({
      mcpServers: { "claude-agents-mcp": { type: "http", url, headers: { Authorization: "Bearer ccm_secret" } } },
    });
  });

  it("the output for a new token omits the token if the output is stored", () => {
    const text = firstStartText(made, { url, showToken: false });
    expect(text).not.toContain("ccm_secret");
    expect(text).toContain("Replace <token> with it");
    expect(text).toContain('--header "Authorization: Bearer <token>"');
  });
});
