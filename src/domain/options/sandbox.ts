import { z } from "zod";

/**
 * Schema of the SDK's `SandboxSettings`; a test compares both. Strict, although the SDK accepts any field: Claude Code silently
 * drops all sandbox settings if one is invalid.
 */

const flag = z.boolean().exactOptional();
const text = z.string().min(1);
const list = z.array(text).max(1000).exactOptional();
const port = z.number().int().min(1).max(65_535).exactOptional();

const Network = z.strictObject({
  allowedDomains: list,
  deniedDomains: list,
  strictAllowlist: flag,
  allowManagedDomainsOnly: flag,
  allowUnixSockets: list,
  allowAllUnixSockets: flag,
  allowLocalBinding: flag,
  allowMachLookup: list,
  httpProxyPort: port,
  socksProxyPort: port,
  tlsTerminate: z.strictObject({ caCertPath: text.exactOptional(), caKeyPath: text.exactOptional() }).exactOptional(),
});

const Filesystem = z.strictObject({
  allowWrite: list,
  denyWrite: list,
  denyRead: list,
  allowRead: list,
  allowManagedReadPathsOnly: flag,
  disabled: flag,
});

const Secret = {
  mode: z.enum(["deny", "mask"]),
  extract: text.exactOptional(),
  onExtractNoMatch: z.enum(["deny", "error", "warn"]).exactOptional(),
  decode: z.literal("jwt").exactOptional(),
  maskClaims: list,
  injectHosts: list,
};

const Pass = z.enum(["deny", "passthrough"]).exactOptional();

const Credentials = z.strictObject({
  files: z
    .array(z.strictObject({ path: text, ...Secret, maskDuplicates: flag }))
    .max(1000)
    .exactOptional(),
  envVars: z
    .array(z.strictObject({ name: text, ...Secret }))
    .max(1000)
    .exactOptional(),
  allowPlaintextInject: flag,
  awsPairs: z
    .array(z.strictObject({ accessKeyIdVar: text, secretAccessKeyVar: text, sessionTokenVar: text.exactOptional() }))
    .max(1000)
    .exactOptional(),
  sigv4: z.strictObject({ streaming: Pass, presigned: Pass, sigv4a: Pass }).exactOptional(),
});

export const Sandbox = z.strictObject({
  enabled: flag.describe("run shell commands in the operating system's sandbox (bubblewrap on Linux). Default: false"),
  failIfUnavailable: flag.describe("do not start the session without a sandbox. Default: true when enabled"),
  autoAllowBashIfSandboxed: flag.describe("run sandboxed commands without asking. Default: true"),
  allowUnsandboxedCommands: flag.describe("let commands ask to run outside the sandbox. Default: true"),
  network: Network.exactOptional().describe("hosts, sockets and ports. Default: none"),
  filesystem: Filesystem.exactOptional().describe("further paths to allow and deny. Default: none"),
  credentials: Credentials.exactOptional().describe("secrets to hide from commands. Default: none"),
  ignoreViolations: z.record(text, z.array(text).max(1000)).exactOptional().describe("Default: none"),
  enableWeakerNestedSandbox: flag.describe("for containers without privileges. Default: false"),
  allowNestedUserNamespaces: flag.describe("Default: false"),
  enableWeakerNetworkIsolation: flag.describe("Default: false"),
  allowAppleEvents: flag.describe("Default: false"),
  excludedCommands: list.describe("commands that run outside the sandbox. Default: []"),
  ripgrep: z
    .strictObject({ command: text, args: z.array(z.string()).exactOptional() })
    .exactOptional()
    .describe("Default: Claude Code's own"),
  bwrapPath: text.exactOptional().describe("used in managed settings only. Default: found in PATH"),
  socatPath: text.exactOptional().describe("used in managed settings only. Default: found in PATH"),
});
