import { ConfigError } from "./error.ts";
import type { GivenByKey } from "./given-values.ts";
import { checkedConfig } from "./load.ts";
import { SETTINGS, type Config, type Terms } from "./schema.ts";
import { MAX_TIMER_MS } from "../domain/timer.ts";
import { tighter } from "../domain/approvals/risk.ts";

/** Bounds: terms that the operator gives, and no client of a server can leave. */

/** No value of a term is within its bound. The message names neither source; see `named`. */
export class OutOfBoundsError extends ConfigError {
  readonly key: keyof Terms;
  readonly #own: string;
  readonly #bound: string;

  constructor(key: keyof Terms, own: string, bound: string) {
    super(`${key}: ${own} is out of bounds. Name some of ${bound}.`);
    this.key = key;
    this.#own = own;
    this.#bound = bound;
  }

  /** Returns the error with the sources of the value (`from`) and of the bound (`by`). */
  named(from: string, by: string): ConfigError {
    return new ConfigError(
      `${from}: ${this.#own} is out of bounds. ${by} allows ${this.#bound}. Name some of these.`,
      this,
    );
  }
}

/** A term without a bound is free for each connection. */
export type Bounds = Partial<Terms>;

/** Returns the terms in `given`. Throws ConfigError for a value that is not allowed. */
export function boundsOf(given: GivenByKey): Bounds {
  const ofTerm = (key: string) => TERMS.find((term) => key === term || key.startsWith(`${term}.`));
  const ofTerms = [...given].filter(([key]) => ofTerm(key) !== undefined);
  const config = checkedConfig(new Map([...UNBOUND, ...ofTerms]));
  const keys = new Set(ofTerms.map(([key]) => ofTerm(key) ?? key));
  return Object.fromEntries([...keys].map((key) => [key, Reflect.get(config, key)]));
}

const TERMS = SETTINGS.filter(({ of }) => of === "term").map(({ key }) => key);

/** Makes keys of `query` that are not given bound nothing. */
const UNBOUND: GivenByKey = new Map(
  Object.entries({ maxExecutionMs: MAX_TIMER_MS, maxBytes: 33_554_432 }).map(([key, value]) => [
    `query.${key}`,
    { value, from: key },
  ]),
);

/** Returns a connection's settings with each term at its bound. The policy of its sessions is the tighter of both. */
export function atBounds(config: Config, bounds: Bounds): Config {
  const both = (own: readonly string[], more: readonly string[] = []) => [...own, ...more];
  const { query } = withinBounds(config, bounds);
  const rules = {
    askRules: both(config.askRules, bounds.askRules),
    denyRules: both(config.denyRules, bounds.denyRules),
  };
  return { ...config, ...bounds, ...rules, query };
}

/**
 * Returns a connection's settings within bounds. Rules, folders and approval chain stay unchanged here: policies of sessions
 * combine them by real paths and home folder (`atBounds`). Throws OutOfBoundsError if nothing is left.
 */
export function withinBounds(config: Config, bounds: Bounds): Config {
  return { ...config, ...combined(bounds, config) };
}

/** Combines the bounds of two sources. Throws ConfigError if both give a term that only a policy can combine. */
export function commonBounds(bounds: Bounds, further: Bounds): Bounds {
  const twice = Object.entries(COMBINED).find(
    ([key, combine]) => combine === byPolicy && Object.hasOwn(bounds, key) && Object.hasOwn(further, key),
  );
  if (twice) {
    throw new ConfigError(
      `${twice[0]}: the bounds of the user's file give it already. Leave it out in one of the two places.`,
    );
  }
  return { ...bounds, ...further, ...combined(pickKeys(bounds, further), further) };
}

function pickKeys(from: Bounds, keys: Bounds): Bounds {
  return Object.fromEntries(Object.entries(from).filter(([key]) => Object.hasOwn(keys, key)));
}

function combined(bounds: Bounds, own: Bounds): Bounds {
  const given = Object.entries(COMBINED).filter(([key]) => Object.hasOwn(bounds, key));
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each value is combined with one of the same key
  const all = given as [keyof Terms, Combine<unknown>][];
  return Object.fromEntries(all.map(([key, combine]) => [key, combine(bounds[key], own[key])]));
}

type Combine<Value> = (bound: Value, own: Value) => Value;

const both: Combine<boolean> = (bound, own) => bound && own;
const lesser: Combine<number> = (bound, own) => Math.min(bound, own);
const byPolicy = <Value>(_: Value, own: Value): Value => own;
const strict =
  <Value>(strictest: NoInfer<Value>): Combine<Value> =>
  (bound, own) =>
    bound === strictest ? bound : own;

/** A term without a line here does not compile. */
const COMBINED: { readonly [Key in keyof Terms]-?: Combine<Terms[Key]> } = {
  maxWaitMs: (bound, own) => (bound === undefined ? own : Math.min(bound, own ?? bound)),
  turnMaxMs: lesser,
  idleProcessMs: lesser,
  unattended: strict("deny"),
  unattendedMaxUsd: lesser,
  permissionMaxMs: lesser,
  allowBypass: both,
  approvals: byPolicy,
  // `undefined` is less than `all` over HTTP.
  callerApproves: (bound = "all", own) => (bound === "all" ? own : tighter(bound, own ?? bound)),
  allowRules: byPolicy,
  askRules: byPolicy,
  denyRules: byPolicy,
  sandbox: strict("required"),
  allowDiskResume: both,
  allowSensitiveSessionDetails: both,
  allowDirs: byPolicy,
  trustDirs: byPolicy,
  claudePath: (bound, own) => bound ?? own,
  maxDepth: lesser,
  toolsets: commonToolsets,
  dynamicDescription: both,
  // All other keys are mere defaults: a call may replace them.
  query: (bound, own) => ({
    ...own,
    enabled: both(bound.enabled, own.enabled),
    maxExecutionMs: lesser(bound.maxExecutionMs, own.maxExecutionMs),
    maxBytes: lesser(bound.maxBytes, own.maxBytes),
  }),
};

function commonToolsets(bound: Terms["toolsets"], own: Terms["toolsets"]): Terms["toolsets"] {
  if (bound.includes("all")) return own;
  if (own.includes("all")) return bound;
  const common = own.filter((toolset) => bound.includes(toolset));
  if (common.length > 0) return common;
  throw new OutOfBoundsError("toolsets", own.join(", "), bound.join(", "));
}
