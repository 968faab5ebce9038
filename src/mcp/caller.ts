import type { AuthInfo, ServerContext } from "@modelcontextprotocol/server";
import { Caller, LOCAL_CALLER } from "../domain/principal.ts";

/** What the door hands on with a request. */
export interface Entry {
  readonly caller: Caller;
  /** The body as it was parsed; undefined for a request without one. */
  readonly body: unknown;
}

/** A caller on his way through the SDK, which knows him as the client of a token. The token itself stays at the door. */
export function authInfoOf({ attended = false, principal, scopes }: Caller): AuthInfo {
  return { token: "", clientId: principal, scopes: [...scopes], extra: { attended } };
}

/** Who makes a request: what the door has said with it, or whoever started this server for himself. */
export function callerOf({ http }: ServerContext): Caller {
  return http ? callerIn(http.authInfo) : LOCAL_CALLER;
}

/** Throws where the door has let somebody in without a name: nothing may be done for him. */
export function callerIn(authInfo: AuthInfo | undefined): Caller {
  const attended = authInfo?.extra?.["attended"] === true;
  return Caller.parse({ principal: authInfo?.clientId, scopes: authInfo?.scopes, ...(attended && { attended }) });
}
