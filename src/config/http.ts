import { Principals } from "./principals/terms.ts";
import { count, optionalCount, json, LONGEST_MS, milliseconds, optionalText, path, toggle, words } from "./setting.ts";

/** Settings of a server that is reached over HTTP. Without `http` they have no effect, but for what principals may do. */

/** Where `--http` alone listens. */
export const DEFAULT_LISTEN = "127.0.0.1:7465";

export const httpFields = {
  http: optionalText("off", DEFAULT_LISTEN, {
    flag: "http",
    variable: "CLAUDE_CODE_MCP_HTTP",
    group: "HTTP",
    meaning: `Serves MCP over HTTP at /mcp on this host:port, in place of stdio. Alone: ${DEFAULT_LISTEN}. Port 0 takes a free one.`,
  }),
  stdio: toggle({
    flag: "stdio",
    variable: "CLAUDE_CODE_MCP_STDIO",
    group: "HTTP",
    meaning:
      "With --http: serves the client on stdin and stdout too, on the same engine. Its end does not end the server.",
  }),
  publicUrl: optionalText("http://<host:port>", undefined, {
    flag: "public-url",
    variable: "CLAUDE_CODE_MCP_PUBLIC_URL",
    group: "HTTP",
    meaning:
      "Where clients reach this server, such as https://agents.example.com behind a proxy. Its host is an allowed one.",
  }),
  allowHosts: words("the host of --http and of --public-url; on loopback also localhost, 127.0.0.1, [::1]", {
    flag: "allow-host",
    variable: "CLAUDE_CODE_MCP_ALLOW_HOSTS",
    group: "HTTP",
    meaning: "Further values of the Host header that are answered, without port.",
  }),
  allowOrigins: words("pages of the allowed hosts", {
    flag: "allow-origin",
    variable: "CLAUDE_CODE_MCP_ALLOW_ORIGINS",
    group: "HTTP",
    meaning: "Further values of the Origin header that are answered, such as https://inspector.example.com.",
  }),
  console: toggle(
    {
      flag: "console",
      variable: "CLAUDE_CODE_MCP_CONSOLE",
      group: "HTTP",
      meaning:
        "Whether the web console is served at /console/, for people who sign in with a token. See docs/console.md.",
    },
    true,
  ),
  auth: toggle(
    {
      flag: "auth",
      variable: "CLAUDE_CODE_MCP_AUTH",
      group: "HTTP",
      meaning:
        "Whether a token is required. Without, everybody who reaches the port can do everything: on loopback only.",
    },
    true,
  ),
  tokenFile: path("a file in your state folder, made at the first start", {
    flag: "token-file",
    variable: "CLAUDE_CODE_MCP_TOKEN_FILE",
    group: "HTTP",
    meaning: "A file with your token, which has every scope but decide.",
  }),
  attended: toggle({
    flag: "attended",
    variable: "CLAUDE_CODE_MCP_ATTENDED",
    group: "HTTP",
    meaning:
      "A person sits at every client that uses your own token: a form that comes back counts as theirs, else as the calling model's. Of named users their `attended` says it.",
  }),
  decideTokenFile: path("none", {
    flag: "decide-token-file",
    variable: "CLAUDE_CODE_MCP_DECIDE_TOKEN_FILE",
    group: "HTTP",
    meaning:
      "A file with another token of yours, with the scopes read, approve and decide: for a program that answers for you, such as the webhook's receiver, and for no calling model.",
  }),
  oauthIssuer: optionalText("none", undefined, {
    flag: "oauth-issuer",
    variable: "CLAUDE_CODE_MCP_OAUTH_ISSUER",
    group: "HTTP",
    meaning:
      "The URL of an OAuth authorization server whose access tokens (JWT) are taken; their scopes are read, run, approve, decide, admin.",
  }),
  oauthAudience: optionalText("<public-url>/mcp", undefined, {
    flag: "oauth-audience",
    variable: "CLAUDE_CODE_MCP_OAUTH_AUDIENCE",
    group: "HTTP",
    meaning: "The audience that such a token must have.",
  }),
  oauthJwks: optionalText("named by the issuer's metadata", undefined, {
    flag: "oauth-jwks",
    variable: "CLAUDE_CODE_MCP_OAUTH_JWKS",
    group: "HTTP",
    meaning: "The URL of the keys that such tokens are signed with.",
  }),
  principals: json(Principals, {
    flag: "principals",
    variable: "CLAUDE_CODE_MCP_PRINCIPALS",
    group: "HTTP",
    meaning:
      "Named users of the server: the digest of their token, their scopes, and what their sessions may use. See docs/http.md.",
  }),
  rateLimit: count(
    { least: 1, most: 1_000_000, fallback: 600 },
    {
      flag: "rate-limit",
      variable: "CLAUDE_CODE_MCP_RATE_LIMIT",
      group: "HTTP",
      meaning:
        "Requests that a principal may make in a minute; of requests without a valid token a tenth of it, for each address.",
    },
  ),
  maxStreams: count(
    { least: 1, most: 100_000, fallback: 256 },
    {
      flag: "max-streams",
      variable: "CLAUDE_CODE_MCP_MAX_STREAMS",
      group: "HTTP",
      meaning: "Requests of a principal that may be open at a time: calls that wait, and streams.",
    },
  ),
  maxConnections: optionalCount(
    { least: 4, most: 1_000_000 },
    "half of the file descriptors that the server may have (ulimit -n), at most 4096",
    {
      flag: "max-connections",
      variable: "CLAUDE_CODE_MCP_MAX_CONNECTIONS",
      group: "HTTP",
      meaning:
        "Connections that may be open at a time. Half of them may be without a valid token, a quarter (at most 64) from one address; the oldest of those give way, and none stays longer than 10 s.",
    },
  ),
  maxBodyBytes: count(
    { least: 65_536, most: 268_435_456, fallback: 33_554_432 },
    {
      flag: "max-body-bytes",
      variable: "CLAUDE_CODE_MCP_MAX_BODY_BYTES",
      group: "HTTP",
      meaning: "The largest body of a request.",
    },
  ),
  receiveMs: milliseconds(
    { least: 100, most: 3_600_000, fallback: 60_000 },
    {
      flag: "receive-ms",
      variable: "CLAUDE_CODE_MCP_RECEIVE_MS",
      group: "HTTP",
      meaning: "A request whose body has not arrived by then is refused; its headers have a quarter of it.",
    },
  ),
  sendMs: milliseconds(
    { least: 100, most: 3_600_000, fallback: 30_000 },
    {
      flag: "send-ms",
      variable: "CLAUDE_CODE_MCP_SEND_MS",
      group: "HTTP",
      meaning: "A client that has not taken anything of its answer for so long while there is more is cut off.",
    },
  ),
  idleClientMs: milliseconds(
    { least: 1_000, most: LONGEST_MS, fallback: 3_600_000 },
    {
      flag: "idle-client-ms",
      variable: "CLAUDE_CODE_MCP_IDLE_CLIENT_MS",
      group: "HTTP",
      meaning:
        "A protocol session of a 2025 client with no request open for so long is forgotten; the client begins another.",
    },
  ),
  drainMs: milliseconds(
    { least: 0, most: 3_600_000, fallback: 10_000 },
    {
      flag: "drain-ms",
      variable: "CLAUDE_CODE_MCP_DRAIN_MS",
      group: "HTTP",
      meaning:
        "On SIGTERM turns may go on for so long while new ones are refused and readiness is false; then they are interrupted.",
    },
  ),
};
