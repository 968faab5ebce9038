import { ConfigError } from "./error.ts";
import { CONSTANTS_VARIABLE } from "../domain/names.ts";

/**
 * Times and limits without a setting. Tests override some of them with a JSON object in an undocumented variable
 * (`CONSTANTS_VARIABLE`).
 */

const DEFAULTS = {
  /** Time without a message of Claude Code after which a turn ends, ms. */
  inactivityMs: 1_800_000,
  /** Time for the start of Claude Code if its session has no `sessionInitTimeoutMs`, ms. */
  sessionInitTimeoutMs: 60_000,
  /** Time without any client that reads, follows or waits for a session, after which the session is unattended, ms. */
  unattendedAfterMs: 600_000,
  /** Maximum duration of a turn of an unattended session, ms. */
  unattendedMaxMs: 14_400_000,
  /** Time after a reset until a turn that waits for it goes on, ms; up to as much again is added at random. */
  limitMarginMs: 15_000,
  /** Interval of the search for expired sessions and for processes of dead servers, ms. */
  cleanupIntervalMs: 60_000,
  /** Maximum share of the processes that are kept for background work alone while sessions queue. */
  maxBackgroundShare: 0.5,
  /** Time limit of a look at the folders of a session, or of their comparison, ms. Less than `SETTLE_MS` of the engine. */
  compareMs: 3_000,
  /** True to skip `setpriv`, so that only the reaper ends Claude Code after the death of the server. */
  reaperAlone: false,
  /** Time that a client waits for the start of its daemon, ms. */
  daemonStartMs: 5_000,
  /** Time in which open requests of a client are still answered after the end of its input, ms. */
  lastAnswersMs: 45_000,
  /** Time without clients and work after which a daemon ends, ms. */
  daemonIdleMs: 600_000,
  /** True to run Claude Code in a shim, if the system allows. */
  shim: true,
  /** Time for which a shim keeps Claude Code without a server, ms. */
  keepMs: 300_000,
  /** Length of a lease on a store of several machines, ms. 0 means the setting `leaseMs`. */
  testLeaseMs: 0,
  /** Maximum number of open HTTP requests per principal. */
  maxStreams: 256,
  /** Maximum number of open HTTP connections. 0 means half of the server's file descriptors, at most 4096. */
  maxConnections: 0,
  maxBodyBytes: 33_554_432,
  /** Time to receive a request, ms. Headers have a quarter of it. */
  receiveMs: 60_000,
  /** Time after which a client that reads nothing of its answer is cut off, ms. */
  sendMs: 30_000,
  /** Time without an open request after which a protocol session (2025 clients) is forgotten, ms. */
  idleClientMs: 3_600_000,
  /** Time in which a link to a request can be opened, and then the time of its page, ms. */
  requestLinkMs: 600_000,
  /** Delay before the second attempt, ms, ± 25 %. Each further delay is four times as long. */
  notifyRetryMs: 2_000,
  /** Time without a response after which an attempt has failed, ms. */
  notifyTimeoutMs: 10_000,
};

export type Constants = Readonly<typeof DEFAULTS>;

let cached: { readonly text: string | undefined; readonly constants: Constants } = {
  text: undefined,
  constants: DEFAULTS,
};

/** Throws `ConfigError` unless `text` is empty or an object of known constants with values of the right type. */
export function constants(text = process.env[CONSTANTS_VARIABLE]): Constants {
  if (cached.text !== text) cached = { text, constants: { ...DEFAULTS, ...parseOverrides(text) } };
  return cached.constants;
}

function parseOverrides(text = ""): Partial<Constants> {
  if (text === "") return {};
  const others: unknown = JSON.parse(text);
  const bad = Object.entries(others ?? {}).find(([name, value]) => typeof value !== typeof Reflect.get(DEFAULTS, name));
  if (typeof others === "object" && !bad) return { ...others };
  throw new ConfigError(
    `${CONSTANTS_VARIABLE}: ${bad?.[0] ?? text} cannot be given. Name constants of src/config/constants.ts.`,
  );
}
