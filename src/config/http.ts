import { z } from "zod";
import { ConfigError } from "./error.ts";
import { Principals } from "./principals.ts";
import { count, json, milliseconds, optionalText, path, toggle, words } from "./setting.ts";

/** Settings of a server over HTTP. Without `http` they have no effect, except for rights of principals. */

/** Address of `--http` without a value. */
export const DEFAULT_LISTEN = "127.0.0.1:7465";

const OAuth = z
  .strictObject({
    /** URL of the authorization server. */
    issuer: z.string().min(1),
    /** Required audience of tokens. */
    audience: z.string().min(1).exactOptional(),
    /** URL of the keys that sign tokens. */
    jwks: z.string().min(1).exactOptional(),
  })
  .readonly()
  .optional();
export type OAuth = NonNullable<z.output<typeof OAuth>>;

export const httpFields = {
  http: optionalText("off", DEFAULT_LISTEN, {
    flag: "http",
    variable: "CLAUDE_CODE_MCP_HTTP",
    meaning: `Serve MCP over HTTP at /mcp on this host:port. In place of stdio. Without a value: ${DEFAULT_LISTEN}. Port 0 selects a free port.`,
  }),
  publicUrl: optionalText("http://<host:port>", undefined, {
    flag: "public-url",
    variable: "CLAUDE_CODE_MCP_PUBLIC_URL",
    meaning:
      "URL at which clients reach this server. Such as https://agents.example.com behind a proxy. Its host is allowed in the Host header.",
  }),
  allowHosts: words("the host of --http and of --public-url; on loopback also localhost, 127.0.0.1, [::1]", {
    flag: "allow-host",
    variable: "CLAUDE_CODE_MCP_ALLOW_HOSTS",
    meaning: "Additional allowed values of the Host header, without port.",
  }),
  allowOrigins: words("pages of the allowed hosts", {
    flag: "allow-origin",
    variable: "CLAUDE_CODE_MCP_ALLOW_ORIGINS",
    meaning: "Additional allowed values of the Origin header. Such as https://inspector.example.com.",
  }),
  console: toggle(
    {
      flag: "console",
      variable: "CLAUDE_CODE_MCP_CONSOLE",
      meaning: "Serve the web console at /console/. Users sign in with a token. See docs/console.md.",
    },
    true,
  ),
  auth: toggle(
    {
      flag: "auth",
      variable: "CLAUDE_CODE_MCP_AUTH",
      meaning:
        "Require a token. With --no-auth, anyone who can reach the port can do everything, so it is allowed on loopback only.",
    },
    true,
  ),
  tokenFile: path("a file in your state folder, made at the first start", {
    flag: "token-file",
    variable: "CLAUDE_CODE_MCP_TOKEN_FILE",
    meaning: "File with the operator's token. It has every scope except decide.",
  }),
  attended: toggle({
    flag: "attended",
    variable: "CLAUDE_CODE_MCP_ATTENDED",
    meaning:
      "A person sits at clients that use the operator's token. Form answers count as theirs, otherwise as the calling model's. For named users, set `attended` in --principals.",
  }),
  decideTokenFile: path("none", {
    flag: "decide-token-file",
    variable: "CLAUDE_CODE_MCP_DECIDE_TOKEN_FILE",
    meaning:
      "File with a second token, with scopes read, approve, decide. For a program that answers on your behalf, such as a webhook receiver; never give it to a calling model.",
  }),
  oauth: json(OAuth, {
    flag: "oauth",
    variable: "CLAUDE_CODE_MCP_OAUTH",
    meaning:
      "Accept access tokens (JWT) of an authorization server. Keys: its issuer, and optionally their audience (default: <public-url>/mcp) and its key set, jwks (default: named by its metadata). Their scopes are read, run, approve, decide and admin.",
  }),
  principals: json(Principals, {
    flag: "principals",
    variable: "CLAUDE_CODE_MCP_PRINCIPALS",
    meaning:
      "Named users of the server. They have token digests, scopes, and what their sessions may use. See docs/http.md.",
  }),
  rateLimit: count(
    { least: 1, most: 1_000_000, fallback: 600 },
    {
      flag: "rate-limit",
      variable: "CLAUDE_CODE_MCP_RATE_LIMIT",
      meaning:
        "Maximum requests per minute of each principal. Each address may make a tenth of that without a valid token.",
    },
  ),
  drainMs: milliseconds(
    { least: 0, most: 3_600_000, fallback: 10_000 },
    {
      flag: "drain-ms",
      variable: "CLAUDE_CODE_MCP_DRAIN_MS",
      meaning:
        "Time that running turns have to end, at SIGTERM or a stop. With --http and in a daemon; new ones are refused and /readyz fails. Turns that still run are then interrupted.",
    },
  ),
};

/** Parses `host:port`, or a port alone on loopback. Throws ConfigError. */
export function addressOf(text: string): { host: string; port: number } {
  const [, host = "127.0.0.1", digits = ""] = /^(?:(\[[\da-f:.]+\]|[^:]+):)?(\d{1,5})$/i.exec(text) ?? [];
  const port = digits === "" ? Number.NaN : Number(digits);
  if (port <= 65_535) return { host, port };
  throw new ConfigError(`--http is ${JSON.stringify(text)}: must be host:port, such as 127.0.0.1:7465 or [::1]:0.`);
}
