import { resourceUrl } from "./auth/challenge.ts";

/** Server card (SEP-2127): says before a connection which server this is, where, and how to authenticate. Public, without secrets. */

/** Paths of the card: the reserved one beside the MCP endpoint, and the well-known one of clients that know only the host. */
export const CARD_PATHS = ["/mcp/server-card", "/.well-known/mcp/server-card.json"];

export const CARD_TYPE = "application/mcp-server-card+json";

/** Time that a client may keep a card, s. */
export const CARD_MAX_AGE = 3_600;

export interface CardFacts {
  /** Name in the MCP Registry. */
  readonly registryName: string;
  readonly description: string;
  readonly version: string;
  readonly publicUrl: string;
  readonly protocolVersions: readonly string[];
  /** False if the server accepts everyone. */
  readonly needsToken: boolean;
  /** True if an authorization server gives tokens too. */
  readonly hasIssuer: boolean;
}

/** Returns a card that fits the schema of the extension, v1. */
export function serverCard({ description, hasIssuer, needsToken, publicUrl, registryName, ...facts }: CardFacts) {
  // Optional with an authorization server, to which the first refusal leads a client.
  const traits = { isRequired: !hasIssuer, isSecret: true };
  const token = { description: "Token from the operator of this server", ...traits };
  const authorization = { name: "Authorization", value: "Bearer {token}", variables: { token }, ...traits };
  return {
    $schema: "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
    name: registryName,
    description,
    version: facts.version,
    remotes: [
      {
        type: "streamable-http",
        url: resourceUrl(publicUrl.replace(/\/+$/, "")),
        supportedProtocolVersions: facts.protocolVersions,
        ...(needsToken && { headers: [authorization] }),
      },
    ],
  };
}
