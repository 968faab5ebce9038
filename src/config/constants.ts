import { ConfigError } from "./error.ts";
import { CONSTANTS_VARIABLE } from "../domain/names.ts";

/**
 * Times and limits that are no settings. Tests give others in a variable that is in no document: a JSON object of some of these names.
 */

const USUAL = {
  /** A turn ends after this long without a message of Claude Code, ms. */
  inactivityMs: 1_800_000,
  /** For a start of Claude Code, where the session has no `sessionInitTimeoutMs`, ms. */
  sessionInitTimeoutMs: 60_000,
  /** A session is unattended once no client has looked at it for this long, ms. */
  unattendedAfterMs: 600_000,
  /** For turns of an unattended session, ms. */
  unattendedMaxMs: 14_400_000,
  /** Between searches for expired sessions and processes of dead servers, ms. */
  cleanupIntervalMs: 60_000,
  /** Of the processes, how many background work alone may keep while sessions queue. */
  maxBackgroundShare: 0.5,
  /** Ends Claude Code by the reaper alone where the server dies, and not by the kernel. */
  reaperAlone: false,
  /** A client waits this long for its daemon, ms. */
  daemonStartMs: 5_000,
  /** After the end of its input a client is answered for this long, ms. */
  lastAnswersMs: 45_000,
  /** A daemon ends after this long without clients and work, ms. */
  daemonIdleMs: 600_000,
  /** Has Claude Code held by a shim, where the system can. */
  shim: true,
  /** A shim keeps Claude Code for this long without its server, ms. */
  keepMs: 300_000,
  /** Open requests of each principal. */
  maxStreams: 256,
  /** Open connections; 0 is half of the file descriptors that the server may have, at most 4096. */
  maxConnections: 0,
  maxBodyBytes: 33_554_432,
  /** To receive the body of a request, ms; headers have a quarter of it. */
  receiveMs: 60_000,
  /** A client that reads nothing of its answer for this long is cut off, ms. */
  sendMs: 30_000,
  /** A protocol session (2025 clients) is forgotten after this long without an open request, ms. */
  idleClientMs: 3_600_000,
  /** Of a delivery of the webhook. */
  notifyAttempts: 5,
  /** Before the second attempt, ± 25 %; each further delay is four times as long, ms. */
  notifyRetryMs: 2_000,
  /** An attempt without a response has failed after this long, ms. */
  notifyTimeoutMs: 10_000,
};

export type Constants = Readonly<typeof USUAL>;

let read: { readonly text: string | undefined; readonly constants: Constants } = { text: undefined, constants: USUAL };

/** Throws ConfigError for a variable with anything else in it. */
export function constants(text = process.env[CONSTANTS_VARIABLE]): Constants {
  if (read.text !== text) read = { text, constants: { ...USUAL, ...given(text) } };
  return read.constants;
}

function given(text = ""): Partial<Constants> {
  if (text === "") return {};
  const others: unknown = JSON.parse(text);
  const bad = Object.entries(others ?? {}).find(([name, value]) => typeof value !== typeof Reflect.get(USUAL, name));
  if (typeof others === "object" && !bad) return { ...others };
  throw new ConfigError(
    `${CONSTANTS_VARIABLE}: ${bad?.[0] ?? text} cannot be given. Name constants of src/config/constants.ts.`,
  );
}
