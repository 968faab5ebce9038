/**
 * The packages that npm is to install when they are needed: the versions and integrity values that package-lock.json has. A test
 * compares them.
 */

interface Locked {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
}

export interface Pinned extends Locked {
  /** What it loads, and all that those load. */
  readonly dependencies?: readonly Locked[];
  /** Size of its files, to tell how far an installation has come. */
  readonly bytes: number;
  /** The file that is loaded or started. */
  readonly entry: string;
}

export const SDK = "@anthropic-ai/claude-agent-sdk";
export const SDK_VERSION = "0.3.330";

/** The SDK itself, without its binaries. It imports none of its peer dependencies. */
export const SDK_PACKAGE: Pinned = {
  name: SDK,
  version: SDK_VERSION,
  integrity: "sha512-7om9Xus6tfkeCUCfzg6ilJuN6Z7okkEvJ0mx+ukXa/Id5U/6BGtPkOYni+3ebedwa3b9SVF7A05+ln+/9EoU/w==",
  bytes: 5_300_000,
  entry: "sdk.mjs",
};

/** SQLite for a Node that has none of its own. Only the compiled files in the package are used: install scripts do not run. */
export const DRIVER_PACKAGE: Pinned = {
  name: "@photostructure/sqlite",
  version: "1.2.1",
  integrity: "sha512-DfWwnfp9t4kCorSWsL0/d9pNvAC6n7kYWs239r325WeRllRg9FlTtVgdzz/P8HG1RM5VwCwn6FPp1a42q2gAMQ==",
  bytes: 30_000_000,
  entry: "dist/index.cjs",
  dependencies: [
    {
      name: "node-addon-api",
      version: "8.9.2",
      integrity: "sha512-VijLXbi3UACN69I0JVXJsX4tjACjNoQDgv2gTF6sx2wWEi8tkSg2eX8p5gSIFi8z2+DL3oHmY6OyKce38SDolg==",
    },
    {
      name: "node-gyp-build",
      version: "4.8.4",
      integrity: "sha512-LA4ZjwlnUblHVgq0oBF3Jl/6h/Nvs5fzBLwdEF4nuxnFdsfajde4WfxtJr3CaiH+F6ewcIB/q4jQ4UzPyid+CQ==",
    },
  ],
};

/** Integrity and size of the package with Claude Code, by its target. */
const BINARIES: Readonly<Record<string, readonly [integrity: string, bytes: number]>> = {
  "darwin-arm64": [
    "sha512-J9nqvcfD2V90O5uoR8At66R51VYtSMKnxSmPc0S4A4F5oX1VbokcpJLXU1yVCOuTtzr/OIHjRr9nn2vKi/S6rQ==",
    363_855_808,
  ],
  "darwin-x64": [
    "sha512-woe+f9qeZYWML5fACibNyth0xMDf22riNRNDryIYuhdteh7IoWrK6zC31cC2MrZRoqDZcPVtfOLND79+iZbrLA==",
    378_707_584,
  ],
  "linux-arm64": [
    "sha512-2Q+kfzaoTvJv1rsyu+iR4UHDZ3nxiOfdXISk+2ydQShU9DqXNlgQAt3BdJMh0Yx4MrxB66TMphVvVQeRslwwhA==",
    379_971_000,
  ],
  "linux-arm64-musl": [
    "sha512-fXmuAEegw31v+kiBd51yn7RVhjs7Rz2lnhfx/+XJXqt5lyqR2v7Ul/U/9r1CQZKuIw8M3ms9jQqGpmKbgKndqQ==",
    365_065_160,
  ],
  "linux-x64": [
    "sha512-9w4uMdA3vNZXocwOUhivOGotXoRDxN/C/xPMkZMY9WPpKLAlj8upMZskNgPjQKlVRXhxPfNagcBijGPUH4WepA==",
    381_121_040,
  ],
  "linux-x64-musl": [
    "sha512-kooZMdp6tFwNFkDXbGoNTZMgFcPQfJVfG+gZ2qAdkk11S6MFts9ybHRLQmzUK3VrqlahH7T9fmI2mNfzYgOXkw==",
    367_484_168,
  ],
  "win32-arm64": [
    "sha512-6jscch7vk/XBSn7mm1i6zwTeiz05q98nKrQ3HdTavQEDGvXycMcB/QxIdMrs3vrdNEjWuoxwrL1qlT1lOyAWLg==",
    369_760_416,
  ],
  "win32-x64": [
    "sha512-ooThWbUXlXKTDgj2VgWBXQ/6vSOTaAbBDWPvvCGNHi20haoSkw4uPX9gczkX+HJuVTslvvLiYIfe8zleVPzi7A==",
    387_754_656,
  ],
};

/** Targets that the Agent SDK has a Claude Code for. */
export const TARGETS: readonly string[] = Object.keys(BINARIES);

/** The package with the Claude Code of a target; undefined where there is none. */
export function binaryPackage(target: string): Pinned | undefined {
  const [integrity, bytes] = BINARIES[target] ?? [];
  if (integrity === undefined || bytes === undefined) return undefined;
  const entry = target.startsWith("win32") ? "claude.exe" : "claude";
  return { name: `${SDK}-${target}`, version: SDK_VERSION, integrity, bytes, entry };
}
