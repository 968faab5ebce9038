import type { AuthInfo, ServerContext } from "@modelcontextprotocol/server";
import { Caller, LOCAL_CALLER } from "../domain/principal.ts";

/** What the HTTP endpoint passes on with a request. */
export interface Entry {
  readonly caller: Caller;
  /** The body as it was parsed; undefined for a request without one. */
  readonly body: unknown;
}

/** A caller inside the SDK, which knows it as the client of a token. The token itself is not passed on. */
export function authInfoOf({ attended = false, principal, scopes }: Caller): AuthInfo {
  return { token: "", clientId: principal, scopes: [...scopes], extra: { attended } };
}

/** The maker of a request: the authenticated caller, or the user who started this server on stdio. */
export function callerOf({ http }: ServerContext): Caller {
  return http ? callerIn(http.authInfo) : LOCAL_CALLER;
}

/** Throws for a request over HTTP without a caller: authentication has failed to attach one. */
export function callerIn(authInfo: AuthInfo | undefined): Caller {
  const attended = authInfo?.extra?.["attended"] === true;
  return Caller.parse({ principal: authInfo?.clientId, scopes: authInfo?.scopes, ...(attended && { attended }) });
}
