import type { Caller, Scope } from "../../domain/principal.ts";

/** An authenticated request. */
export interface Authenticated {
  readonly caller: Caller;
  /** Method of authentication: none (`--no-auth`), a token of this server, or a JWT of the authorization server. */
  readonly kind: "open" | "token" | "oauth";
  /** Expiry of a JWT, ms since the epoch. Missing for other kinds. */
  readonly expiresAt?: number;
}

/** Tests for a field and not by `instanceof`, because @hono/node-server replaces the global `Response`. */
export function isAuthenticated(result: Authenticated | Response): result is Authenticated {
  return "caller" in result;
}

/** Configuration of a principal, as far as needed for authentication. */
export interface PrincipalSettings {
  /** SHA-256 of the principal's tokens, in 64 hexadecimal digits. */
  readonly tokenSha256?: string | readonly string[];
  readonly scopes: readonly Scope[];
  /** True if a person uses the principal's clients. */
  readonly attended?: boolean;
}
