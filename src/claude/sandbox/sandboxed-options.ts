import { AppError } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { inlineServerFields } from "../../domain/options/agents.ts";
import { type OptionsWith, TRAITS, traitsOf } from "../../domain/options/traits.ts";

/** Refuses options that would lead around a required sandbox. */

type Sandbox = NonNullable<SessionOptions["sandbox"]>;

/** Options with parts that would lead around the sandbox. */
const CHECKED_BY_VALUE: {
  readonly [K in OptionsWith<"sandbox", "by value">]: (given: Partial<SessionOptions>) => void;
} = {
  agents: ({ agents }) => {
    for (const field of inlineServerFields(agents)) refuse(field, TRAITS.mcpServers.sandbox.refused);
  },
  sandbox: ({ sandbox = {} }) => {
    for (const name of loosened(sandbox)) refuse(`sandbox.${name}`, "it would loosen the sandbox");
  },
};

/**
 * Throws PERMISSION_DENIED for an option against which the sandbox would not hold, because Claude Code itself, running outside
 * the sandbox, would start or write something.
 */
export function checkSandboxedOptions(options: Partial<SessionOptions>): void {
  for (const name of Object.keys(options)) {
    const { sandbox } = traitsOf(name);
    if (typeof sandbox === "object") refuse(name, sandbox.refused);
  }
  for (const check of Object.values(CHECKED_BY_VALUE)) check(options);
}

/**
 * Returns the options of a session that has begun, without the commands of its verification: Claude Code does not get them, and
 * `CheckRunner.refusal` keeps them from running.
 */
export function claudeOptions<T extends Partial<SessionOptions>>(options: T): Omit<T, "verify"> {
  const { verify: _, ...ofClaude } = options;
  return ofClaude;
}

function refuse(name: string, why: string): never {
  const problem = `${name}: is not allowed on this server, because ${why}.`;
  throw new AppError(
    "PERMISSION_DENIED",
    `${problem} This server runs every session in a sandbox (--sandbox required). Leave the option out.`,
  );
}

/** Settings at least as strict as the operator's. Any other setting is refused, even an unknown setting. */
const STRICT: Readonly<Record<string, (value: unknown) => boolean>> = {
  enabled: isTrue,
  failIfUnavailable: isTrue,
  // `planSandbox` decides by the rules whether the setting has effect.
  autoAllowBashIfSandboxed: () => true,
  allowUnsandboxedCommands: isFalse,
  enableWeakerNestedSandbox: isFalse,
  allowNestedUserNamespaces: isFalse,
  enableWeakerNetworkIsolation: isFalse,
  allowAppleEvents: isFalse,
  excludedCommands: isEmpty,
  ignoreViolations: () => true,
  "network.allowedDomains": isEmpty,
  "network.deniedDomains": () => true,
  "network.strictAllowlist": isTrue,
  "network.allowManagedDomainsOnly": isTrue,
  "network.allowUnixSockets": isEmpty,
  "network.allowAllUnixSockets": isFalse,
  "network.allowLocalBinding": isFalse,
  "network.allowMachLookup": isEmpty,
  "filesystem.allowWrite": isEmpty,
  "filesystem.allowRead": isEmpty,
  "filesystem.denyWrite": () => true,
  "filesystem.denyRead": () => true,
  "filesystem.allowManagedReadPathsOnly": isTrue,
  "filesystem.disabled": isFalse,
  "credentials.files": areDenied,
  "credentials.envVars": areDenied,
};

/** Returns the names of settings, such as `network.allowedDomains`, by which `sandbox` is looser than the required sandbox. */
export function loosened(sandbox: Readonly<Sandbox>): string[] {
  const { credentials, filesystem, network, ...top } = sandbox;
  const inside = Object.entries({ credentials, filesystem, network }).flatMap(([group, settings = {}]) =>
    Object.entries(settings).map(([name, value]) => [`${group}.${name}`, value] as const),
  );
  return [...Object.entries(top), ...inside]
    .filter(([name, value]) => STRICT[name]?.(value) !== true)
    .map(([name]) => name);
}

function isTrue(value: unknown): boolean {
  return value === true;
}

function isFalse(value: unknown): boolean {
  return value === false;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Only `deny`, because a mask puts the secret back into data that leaves the machine. */
function areDenied(value: unknown): boolean {
  return Array.isArray(value) && value.every((each: unknown) => isObject(each) && each["mode"] === "deny");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
