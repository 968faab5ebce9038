import type { AuthInfo, ServerContext } from "@modelcontextprotocol/server";
import { Caller, LOCAL_CALLER } from "../domain/principal.ts";

/** Input of the HTTP endpoint, besides the request. */
export interface CallerAndBody {
  readonly caller: Caller;
  /** The parsed body; `undefined` for a request without a body. */
  readonly body: unknown;
}

/** Represents a caller as the SDK's client of a token. The token itself is left out. */
export function authInfoOf({ attended = false, principal, scopes }: Caller): AuthInfo {
  return { token: "", clientId: principal, scopes: [...scopes], extra: { attended } };
}

/** Returns the authenticated caller, or the user who has started this server on stdio. */
export function callerOf({ http }: ServerContext): Caller {
  return http ? callerFromAuthInfo(http.authInfo) : LOCAL_CALLER;
}

/** Throws for an HTTP request without a caller, because authentication must have attached one. */
export function callerFromAuthInfo(authInfo: AuthInfo | undefined): Caller {
  const attended = authInfo?.extra?.["attended"] === true;
  return Caller.parse({ principal: authInfo?.clientId, scopes: authInfo?.scopes, ...(attended && { attended }) });
}
