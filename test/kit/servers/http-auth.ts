import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as jose from "jose";
import { ConfigError } from "../../../src/config/error.ts";
import { isAuthenticated, type Authenticated } from "../../../src/http/auth/authenticated.ts";
import { createAuthenticator, type Authenticator, type AuthSettings } from "../../../src/http/auth/authenticator.ts";

/** Authentication of a server with real files and requests, and its log. */
export class AuthSetup {
  readonly folder: string;
  readonly logged: string[] = [];

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(): Promise<AuthSetup> {
    return new AuthSetup(await mkdtemp(join(tmpdir(), "auth-")));
  }

  get tokenFile(): string {
    return join(this.folder, "state", "http-token");
  }

  settings(over: Partial<AuthSettings> = {}): AuthSettings {
    const log = (message: string, fields?: object) => void this.logged.push(`${message} ${JSON.stringify(fields)}`);
    return {
      auth: true,
      host: "127.0.0.1",
      publicUrl: () => PUBLIC_URL,
      stateFolder: join(this.folder, "state"),
      workFolders: [],
      principals: {},
      log: { error: log, info: log },
      ...over,
    };
  }

  async open(over: Partial<AuthSettings> = {}): Promise<Authenticator> {
    return createAuthenticator(this.settings(over));
  }

  /** Returns the message of the `ConfigError` for these settings. */
  async refusal(over: Partial<AuthSettings>): Promise<string> {
    try {
      await this.open(over);
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
    return "not refused";
  }

  async close(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

export const PUBLIC_URL = "http://127.0.0.1:7465";
export const AUDIENCE = `${PUBLIC_URL}/mcp`;

interface Refusal {
  readonly status: number;
  readonly challenge: string | null;
  readonly body: { readonly error: string; readonly message: string };
}

export async function readRefusal(response: Response): Promise<Refusal> {
  const challenge = response.headers.get("www-authenticate");
  return { status: response.status, challenge, body: (await response.json()) as Refusal["body"] };
}

/** Authenticates a request with `headers`, in which a name may occur twice. */
export async function sendHeaders(
  authenticator: Authenticator,
  ...headers: [string, string][]
): Promise<Authenticated | Refusal> {
  const result = await authenticator.authenticate(new Request(AUDIENCE, { method: "POST", headers }));
  return isAuthenticated(result) ? result : readRefusal(result);
}

export async function send(authenticator: Authenticator, token: string): Promise<Authenticated | Refusal> {
  return sendHeaders(authenticator, ["authorization", `Bearer ${token}`]);
}

interface Pair {
  readonly privateKey: jose.CryptoKey;
  readonly publicKey: jose.CryptoKey;
  readonly kid: string;
  readonly alg: string;
}

/** An authorization server on loopback: metadata, keys, and tokens signed with these keys. */
export class Issuer {
  readonly #server: Server;
  #path = "";
  readonly asked: string[] = [];
  keys: Pair[] = [];
  /** Answer at each path; a number is a status without a body. */
  readonly answers = new Map<string, () => unknown>();

  private constructor(server: Server) {
    this.#server = server;
  }

  /** `path`: path of the issuer, such as /tenant. `discovery`: path of the metadata. */
  static async start(path = "", discovery = `/.well-known/oauth-authorization-server${path}`): Promise<Issuer> {
    const server = createServer((request, response) => {
      const url = request.url ?? "";
      issuer.asked.push(url);
      const answer = issuer.answers.get(url)?.() ?? 404;
      response.writeHead(typeof answer === "number" ? answer : 200, { "content-type": "application/json" });
      response.end(typeof answer === "number" ? "" : JSON.stringify(answer));
    });
    const issuer = new Issuer(server);
    issuer.#path = path;
    await new Promise<void>((listening) => void server.listen(0, "127.0.0.1", listening));
    issuer.keys = [await Issuer.pair("one")];
    issuer.answers.set(discovery, () => ({ issuer: issuer.url, jwks_uri: issuer.jwks }));
    await issuer.publish();
    return issuer;
  }

  static async pair(kid: string, alg = "ES256"): Promise<Pair> {
    return { ...(await jose.generateKeyPair(alg, { extractable: true })), kid, alg };
  }

  /** Publishes the public halves of `keys`. */
  async publish(): Promise<void> {
    const keys = await Promise.all(
      this.keys.map(async ({ alg, kid, publicKey }) => ({ ...(await jose.exportJWK(publicKey)), kid, alg })),
    );
    this.answers.set("/keys", () => ({ keys }));
  }

  get origin(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  get url(): string {
    return this.origin + this.#path;
  }

  get jwks(): string {
    return `${this.origin}/keys`;
  }

  /** Signs a valid token with `claims` replaced; an `undefined` claim is omitted. */
  async sign(claims: Record<string, unknown> = {}, header: Record<string, string> = {}, key = this.keys[0]!) {
    const now = Math.floor(Date.now() / 1_000);
    const good = { iss: this.url, aud: AUDIENCE, sub: "ada", scope: "read run", iat: now, exp: now + 300 };
    return new jose.SignJWT({ ...good, ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: "at+jwt", ...header })
      .sign(key.privateKey);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}
