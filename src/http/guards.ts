/**
 * Checks of a request before it is authenticated. Each guard lets it pass or answers it; a page in a browser
 * must not reach a server on the same machine through its user (DNS rebinding, forms, scripts of other sites).
 */

export interface Guard {
  /** What it refuses for, as it is counted. */
  readonly about: "host" | "origin" | "media_type";
  /** The answer to a request that must not pass. */
  readonly refusal: (request: Request) => Response | undefined;
}

/** A refusal as JSON: what is wrong, and what to do. */
export function refuse(status: number, error: string, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error, message }, { status, headers });
}

export interface Names {
  /** Host names that are ours, in lower case and without port. */
  readonly hosts: ReadonlySet<string>;
  /** Origins of other pages that may call, as a browser writes them. */
  readonly origins: ReadonlySet<string>;
}

/** In the order in which they stand. */
export function guardsFor(names: Names): readonly Guard[] {
  return [
    { about: "host", refusal: knownHost(names) },
    { about: "origin", refusal: knownOrigin(names) },
    { about: "media_type", refusal: jsonOnly },
  ];
}

/** Probes use the address of a pod or a container, which is unknown beforehand; the answers reveal nothing. */
const PROBES: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

/** An unknown host name that resolves to this server was pointed here by another party (DNS rebinding). */
function knownHost({ hosts }: Names): Guard["refusal"] {
  return ({ headers, url }) => {
    const host = headers.get("host") ?? "";
    if (hosts.has(hostOf(host)) || PROBES.has(new URL(url).pathname)) return undefined;
    return refuse(403, "unknown_host", "This server is not known by that host name. Name it with --allow-host.");
  };
}

/** Programs send none. A page may call the server it comes from, and where the operator has named it. */
function knownOrigin({ origins }: Names): Guard["refusal"] {
  return ({ headers }) => {
    const origin = headers.get("origin");
    if (origin === null ? !isLoadedByOthers(headers) : origins.has(origin) || isSame(origin, headers.get("host")))
      return undefined;
    return refuse(403, "unknown_origin", "Pages of that origin may not call this server. Name it with --allow-origin.");
  };
}

/** An image, a frame, a request whose answer is not read: browsers send them without Origin. A link may lead here. */
function isLoadedByOthers(headers: Headers): boolean {
  const site = headers.get("sec-fetch-site") ?? "none";
  return site !== "none" && site !== "same-origin" && headers.get("sec-fetch-dest") !== "document";
}

/** Forms and simple requests of other sites cannot be of this type without asking first. */
const jsonOnly: Guard["refusal"] = ({ headers, method }) => {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  if (method !== "POST" || type.trim().toLowerCase() === "application/json") return undefined;
  return refuse(415, "unsupported_media_type", "Send the body as Content-Type: application/json.");
};

function isSame(origin: string, host: string | null): boolean {
  return URL.canParse(origin) && new URL(origin).host === host?.toLowerCase();
}

/** Of a Host header, or of host:port: the name in lower case. */
export function hostOf(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, "");
}

/** The names of a machine for itself. */
export const LOOPBACK: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);
