/**
 * Checks before authentication. Each guard passes or refuses a request, so that web pages cannot reach a server on the user's
 * machine through the browser (DNS rebinding, forms, scripts of other sites).
 */

export interface Guard {
  /** Reason for refusals, as a metric label. */
  readonly about: "host" | "origin" | "media_type";
  /** Returns the response to a refused request, `undefined` to pass. */
  readonly refusal: (request: Request) => Response | undefined;
}

/** Builds a refusal in JSON; `message` says what is wrong and what to do. */
export function refuse(status: number, error: string, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error, message }, { status, headers });
}

export interface AllowedNames {
  /** Host names of this server, in lower case and without port. */
  readonly hosts: ReadonlySet<string>;
  /** Origins of other pages that may call, in the spelling of browsers. */
  readonly origins: ReadonlySet<string>;
}

/** Returns the guards in the order of checks. */
export function guardsFor(names: AllowedNames): readonly Guard[] {
  return [
    { about: "host", refusal: knownHost(names) },
    { about: "origin", refusal: knownOrigin(names) },
    { about: "media_type", refusal: jsonOnly },
  ];
}

/** Probes use the address of a pod or a container, unknown beforehand; the responses reveal nothing. */
const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

/** Refuses unknown host names, because a name that resolves to this server may belong to an attacker (DNS rebinding). */
function knownHost({ hosts }: AllowedNames): Guard["refusal"] {
  return ({ headers, url }) => {
    const host = headers.get("host") ?? "";
    if (hosts.has(hostOf(host)) || PROBES.has(new URL(url).pathname)) return undefined;
    return refuse(403, "unknown_host", "This server is not known by that host name. Name it with --allow-host.");
  };
}

/** Accepts programs, which send no `Origin`, and pages of this server or of an origin named with `--allow-origin`. */
function knownOrigin({ origins }: AllowedNames): Guard["refusal"] {
  return ({ headers }) => {
    const origin = headers.get("origin");
    if (
      origin === null ? !isEmbeddedElsewhere(headers) : origins.has(origin) || isSameOrigin(origin, headers.get("host"))
    )
      return undefined;
    return refuse(403, "unknown_origin", "Pages of that origin may not call this server. Name it with --allow-origin.");
  };
}

/**
 * True for images, frames and no-cors requests of other sites, which browsers send without `Origin`. Links to this server are
 * allowed.
 */
function isEmbeddedElsewhere(headers: Headers): boolean {
  const site = headers.get("sec-fetch-site") ?? "none";
  return site !== "none" && site !== "same-origin" && headers.get("sec-fetch-dest") !== "document";
}

/** Requires JSON, because forms and simple requests of other sites cannot send `application/json` without a CORS preflight. */
const jsonOnly: Guard["refusal"] = ({ headers, method }) => {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  if (method !== "POST" || type.trim().toLowerCase() === "application/json") return undefined;
  return refuse(415, "unsupported_media_type", "Send the body as Content-Type: application/json.");
};

function isSameOrigin(origin: string, host: string | null): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
}

/** Returns the name in lower case, from a `Host` header or host:port. */
export function hostOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, "");
}

/** Names of a machine for itself. */
export const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);
