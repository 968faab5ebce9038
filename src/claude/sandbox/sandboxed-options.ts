import { AppError } from "../../domain/error.ts";
import type { SessionOptions } from "../../domain/options.ts";
import { inlineServerFields } from "../../domain/options/agents.ts";
import { type OptionsWith, TRAITS, traitsOf } from "../../domain/options/traits.ts";

/** What no session may be given where every one runs in the sandbox: each of these would lead around it. */

type Sandbox = NonNullable<SessionOptions["sandbox"]>;

/** Options of which a part would lead around the sandbox. */
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
 * Throws PERMISSION_DENIED for an option that the sandbox would not hold against: one that makes Claude Code itself, which
 * runs outside the sandbox, start or write something.
 */
export function checkSandboxedOptions(options: Partial<SessionOptions>): void {
  for (const name of Object.keys(options)) {
    const { sandbox } = traitsOf(name);
    if (typeof sandbox === "object") refuse(name, sandbox.refused);
  }
  for (const check of Object.values(CHECKED_BY_VALUE)) check(options);
}

function refuse(name: string, why: string): never {
  const problem = `${name}: is not allowed on this server, because ${why}.`;
  throw new AppError(
    "PERMISSION_DENIED",
    `${problem} This server runs every session in a sandbox (--sandbox required). Leave the option out.`,
  );
}

/** What is as strict as the operator's own word, or stricter. Everything else is refused, also what is not known yet. */
const STRICT: Readonly<Record<string, (value: unknown) => boolean>> = {
  enabled: isTrue,
  failIfUnavailable: isTrue,
  // Whether it has effect is decided with the rules.
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

/** The names of the settings, such as network.allowedDomains, by which this sandbox is looser than the required one. */
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

/** A mask puts the secret back into what leaves the machine. */
function areDenied(value: unknown): boolean {
  return Array.isArray(value) && value.every((each: unknown) => isObject(each) && each["mode"] === "deny");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
