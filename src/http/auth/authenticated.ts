import type { Caller, Scope } from "../../domain/principal.ts";

/** An authenticated request. */
export interface Authenticated {
  readonly caller: Caller;
  /** By what: no authentication (--no-auth), a token of this server, a JWT of the authorization server. */
  readonly kind: "open" | "token" | "oauth";
  /** From when on it is not taken any more, ms since the epoch; of a JWT only. */
  readonly expiresAt?: number;
}

/** Not by instanceof: @hono/node-server puts a Response of its own in the place of Node's. */
export function isAuthenticated(result: Authenticated | Response): result is Authenticated {
  return "caller" in result;
}

/** What the configuration says of a principal, as far as it matters here. */
export interface Terms {
  /** SHA-256 of their tokens, in 64 hexadecimal digits. */
  readonly tokenSha256?: string | readonly string[];
  readonly scopes: readonly Scope[];
  /** A person sits at their clients. */
  readonly attended?: boolean;
}
