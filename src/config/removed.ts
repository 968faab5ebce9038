import { ConfigError } from "./error.ts";

/** Removed settings, by key, with their replacement. A removed setting must not be ignored silently. */

const QUERY =
  "Enable Cwd Model PermissionMode MaxTurns MaxMessages IncludeSystemMessages AllowedTools MaxExecutionMs MaxBytes";

const REPLACEMENTS: Readonly<Record<string, string>> = {
  inactivityMs: "a turn ends after 30 minutes without a message",
  sessionInitTimeoutMs: "Claude Code has 60 s to start, or the sessionInitTimeoutMs of its session",
  unattendedAfterMs: "a session is unattended after 10 minutes",
  unattendedMaxMs: "unattended turns may run for 4 hours, and cost what --unattended-max-usd allows",
  cleanupIntervalMs: "servers clean up every minute",
  maxBackground: "background work alone may keep half of --max-live",
  reaper: "the kernel and the reaper both end Claude Code, wherever the system can",
  daemonStartMs: "a client waits 5 s for its daemon",
  daemonIdleMs: "a daemon ends after 10 minutes without work",
  shim: "Claude Code has a shim wherever the system can",
  keepMs: "a shim keeps Claude Code for 5 minutes",
  tasks: "clients with the Tasks extension have their turns as tasks",
  stdio: "a client on stdio is served by `claude-agents-mcp` without --http, and has the same sessions",
  peerMessages: "--ask-rules PeerMessage makes messages of other sessions requests; otherwise they are rejected",
  permissionTimeoutMs: "the time of the calling model is set in --approvals, as in caller:60000",
  sandboxDomains: "hosts are allowed by WebFetch(domain:...) in --allow-rules",
  oauthIssuer: 'it is a key of --oauth, {"issuer": ..., "audience": ..., "jwks": ...}',
  oauthAudience: 'it is a key of --oauth, {"issuer": ..., "audience": ..., "jwks": ...}',
  oauthJwks: 'it is a key of --oauth, {"issuer": ..., "audience": ..., "jwks": ...}',
  ...Object.fromEntries(
    QUERY.split(" ").map((key) => [`query${key}`, `it is a key of --query, as in '{"maxTurns": 5}'`]),
  ),
  maxStreams: "a principal may have 256 open requests",
  maxConnections: "half of the file descriptors (ulimit -n) are for connections, at most 4096",
  maxBodyBytes: "a request has at most 32 MiB",
  receiveMs: "a request is received within 60 s",
  sendMs: "a client that reads nothing for 30 s is cut off",
  idleClientMs: "a protocol session is forgotten after an hour without requests",
  notifyEvents: "all events are sent, and the receiver chooses by their type",
  notifyAttempts: "a delivery is attempted for a day",
  notifyRetryMs: "the second attempt comes after 2 s",
  notifyTimeoutMs: "an attempt fails after 10 s",
};

/** Accepted without effect, because configurations of predecessors contain this variable. */
const IGNORED = "CLAUDE_CODE_MCP_CLEANUP_INTERVAL_MS";

const REMOVED = Object.keys(REPLACEMENTS).map((key) => {
  const flag = key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return { key, flag, variable: `CLAUDE_CODE_MCP_${flag.replaceAll("-", "_").toUpperCase()}` };
});

export const REMOVED_VARIABLES = REMOVED.map(({ variable }) => variable).filter((name) => name !== IGNORED);

/** Throws ConfigError if `name` is the flag, variable or key of a removed setting. `from` names it in the message. */
export function refuseRemoved(name: string, from = name): void {
  const removed = REMOVED.find(({ flag, key, variable }) =>
    [`--${flag}`, `--no-${flag}`, key, variable].includes(name),
  );
  if (removed)
    throw new ConfigError(`${from} is no longer a setting: ${REPLACEMENTS[removed.key] ?? ""}. Leave it out.`);
}
