import type { Caller, Scope } from "../../domain/principal.ts";

/** Who has come in. */
export interface Admitted {
  readonly caller: Caller;
  /** By what: nothing was asked for, a token of ours, a JWT of the authorization server. */
  readonly kind: "open" | "token" | "oauth";
  /** From when on it is not taken any more, ms since the epoch; of a JWT only. */
  readonly expiresAt?: number;
}

/** Not by instanceof: @hono/node-server puts a Response of its own in the place of Node's. */
export function isAdmitted(result: Admitted | Response): result is Admitted {
  return "caller" in result;
}

/** What the configuration says of a principal, as far as it matters here. */
export interface Terms {
  /** Of his tokens, in 64 hexadecimal digits. */
  readonly tokenSha256?: string | readonly string[];
  readonly scopes: readonly Scope[];
  /** A person sits at his clients. */
  readonly attended?: boolean;
}
