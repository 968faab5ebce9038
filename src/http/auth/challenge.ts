import type { ErrorCode } from "../../domain/error.ts";
import { SCOPES, type Scope } from "../../domain/principal.ts";

/**
 * Responses to requests without sufficient authentication: RFC 6750, and RFC 9728 with an authorization server. The body
 * repeats the problem in words. No part is taken from the request.
 */

export interface ServerAddress {
  /** Returns the URL at which clients reach the server, without a trailing slash. */
  readonly publicUrl: () => string;
  /** The authorization server; `undefined` if none is configured. */
  readonly issuer: string | undefined;
}

/**
 * Scopes that clients request by default: all that working with sessions needs. `admin` and `decide` must be requested by name.
 */
const USUAL_SCOPES: readonly Scope[] = SCOPES.filter((scope) => scope !== "admin" && scope !== "decide");

export interface Challenges {
  /** 401 without an error code, because no token was sent. */
  readonly missing: () => Response;
  /** 401. `problem` names the fault of the token and the remedy. */
  readonly invalid: (problem: string) => Response;
  /** 403: the token is valid but lacks `scope`. */
  readonly insufficient: (scope: Scope | readonly Scope[]) => Response;
}

export function createChallenges(place: ServerAddress): Challenges {
  const hints = () => (place.issuer === undefined ? {} : { resource_metadata: metadataUrl(place.publicUrl()) });
  const asked = place.issuer === undefined ? {} : { scope: USUAL_SCOPES.join(" ") };
  return {
    missing() {
      const message = "This server needs a token: send the header `Authorization: Bearer <token>`.";
      return errorResponse(401, { error: "unauthorized", message }, challenge({ ...hints(), ...asked }));
    },
    invalid(message) {
      const error = "invalid_token";
      return errorResponse(
        401,
        { error, message },
        challenge({ error, error_description: message, ...hints(), ...asked }),
      );
    },
    insufficient(needed) {
      const scope = [needed].flat().join(" ");
      const error = "insufficient_scope";
      const message = `This needs the scope ${scope}, which the token does not have. Use one that has it.`;
      return errorResponse(
        403,
        { error, code: "PERMISSION_DENIED", message },
        challenge({ error, error_description: message, scope, ...hints() }),
      );
    },
  };
}

/** 503: the keys for checking the token are unavailable. The token may be valid, so the client should keep the token. */
export function keysUnavailable(retryMs: number): Response {
  const message =
    "The keys of the authorization server are not available at the moment. Try again soon with the same token.";
  const retry = { "retry-after": String(Math.ceil(retryMs / 1_000)) };
  return errorResponse(503, { error: "temporarily_unavailable", message }, retry);
}

/** RFC 9728, for GET /.well-known/oauth-protected-resource, with and without /mcp behind. */
export interface ProtectedResource {
  readonly resource: string;
  readonly resource_name: string;
  readonly authorization_servers: readonly string[];
  readonly scopes_supported: readonly Scope[];
  readonly bearer_methods_supported: readonly string[];
}

/** Returns `undefined` if no authorization server is configured. */
export function protectedResource({ issuer, publicUrl }: ServerAddress): ProtectedResource | undefined {
  if (issuer === undefined) return undefined;
  return {
    resource: resourceUrl(publicUrl()),
    resource_name: "claude-agents-mcp",
    authorization_servers: [issuer],
    scopes_supported: SCOPES,
    bearer_methods_supported: ["header"],
  };
}

/** Audience of tokens. */
export function resourceUrl(publicUrl: string): string {
  return `${publicUrl}/mcp`;
}

function metadataUrl(publicUrl: string): string {
  return `${publicUrl}/.well-known/oauth-protected-resource/mcp`;
}

function challenge(parameters: Readonly<Record<string, string>>): Record<string, string> {
  const listed = Object.entries(parameters).map(([name, value]) => `${name}="${replaceUnquotable(value)}"`);
  return { "www-authenticate": `Bearer ${listed.join(", ")}`.trim() };
}

/** Replaces characters that RFC 6750 does not allow between the quotes. */
function replaceUnquotable(value: string): string {
  return value.replaceAll(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "?");
}

function errorResponse(
  status: number,
  body: { error: string; code?: ErrorCode; message: string },
  headers: Record<string, string>,
): Response {
  return Response.json(body, { status, headers: { "cache-control": "no-store", ...headers } });
}
