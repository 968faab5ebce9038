import type { ErrorCode } from "../../domain/error.ts";
import { SCOPES, type Scope } from "../../domain/principal.ts";

/**
 * Responses to requests that are not authenticated: RFC 6750, and RFC 9728 where an authorization server gives out tokens. The
 * body says the same in words. Nothing in it is taken from the request.
 */

export interface Place {
  /** Where clients reach the server, without a slash at its end. */
  readonly publicUrl: () => string;
  /** The authorization server; undefined where there is none. */
  readonly issuer: string | undefined;
}

/** What a client asks the authorization server for: all that working with sessions takes. The others are asked for by name only. */
const USUAL_SCOPES: readonly Scope[] = SCOPES.filter((scope) => scope !== "admin" && scope !== "decide");

export interface Challenges {
  /** 401 without an error code: no token was sent. */
  readonly missing: () => Response;
  /** 401. `problem` says what is wrong with the token, and what to do. */
  readonly invalid: (problem: string) => Response;
  /** 403: the token is good, but does not give `scope`. */
  readonly insufficient: (scope: Scope | readonly Scope[]) => Response;
}

export function createChallenges(place: Place): Challenges {
  const hints = () => (place.issuer === undefined ? {} : { resource_metadata: metadataUrl(place.publicUrl()) });
  const asked = place.issuer === undefined ? {} : { scope: USUAL_SCOPES.join(" ") };
  return {
    missing() {
      const message = "This server needs a token: send the header `Authorization: Bearer <token>`.";
      return answer(401, { error: "unauthorized", message }, challenge({ ...hints(), ...asked }));
    },
    invalid(message) {
      const error = "invalid_token";
      return answer(401, { error, message }, challenge({ error, error_description: message, ...hints(), ...asked }));
    },
    insufficient(needed) {
      const scope = [needed].flat().join(" ");
      const error = "insufficient_scope";
      const message = `This needs the scope ${scope}, which the token does not have. Use one that has it.`;
      return answer(
        403,
        { error, code: "PERMISSION_DENIED", message },
        challenge({ error, error_description: message, scope, ...hints() }),
      );
    },
  };
}

/** 503: the token may be good, and the client is to keep it; the keys to check it with cannot be had now. */
export function keysUnavailable(retryMs: number): Response {
  const message =
    "The keys of the authorization server are not available at the moment. Try again soon with the same token.";
  const retry = { "retry-after": String(Math.ceil(retryMs / 1_000)) };
  return answer(503, { error: "temporarily_unavailable", message }, retry);
}

/** RFC 9728, for GET /.well-known/oauth-protected-resource and the same with /mcp behind it. */
export interface ProtectedResource {
  readonly resource: string;
  readonly resource_name: string;
  readonly authorization_servers: readonly string[];
  readonly scopes_supported: readonly Scope[];
  readonly bearer_methods_supported: readonly string[];
}

/** Undefined where no authorization server is configured. */
export function protectedResource({ issuer, publicUrl }: Place): ProtectedResource | undefined {
  if (issuer === undefined) return undefined;
  return {
    resource: resourceUrl(publicUrl()),
    resource_name: "claude-agents-mcp",
    authorization_servers: [issuer],
    scopes_supported: SCOPES,
    bearer_methods_supported: ["header"],
  };
}

/** What tokens are made for. */
export function resourceUrl(publicUrl: string): string {
  return `${publicUrl}/mcp`;
}

function metadataUrl(publicUrl: string): string {
  return `${publicUrl}/.well-known/oauth-protected-resource/mcp`;
}

function challenge(parameters: Readonly<Record<string, string>>): Record<string, string> {
  const listed = Object.entries(parameters).map(([name, value]) => `${name}="${sendable(value)}"`);
  return { "www-authenticate": `Bearer ${listed.join(", ")}`.trim() };
}

/** RFC 6750 allows these characters between the quotes, and no others. */
function sendable(value: string): string {
  return value.replaceAll(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "?");
}

function answer(
  status: number,
  body: { error: string; code?: ErrorCode; message: string },
  headers: Record<string, string>,
): Response {
  return Response.json(body, { status, headers: { "cache-control": "no-store", ...headers } });
}
