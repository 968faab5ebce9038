import { tmpdir } from "node:os";
import { join } from "node:path";
import { prewarm, query } from "@anthropic-ai/claude-agent-sdk";
import type { Confinement } from "../../../src/domain/principal.ts";
import { EnvironmentRecords } from "../../../src/claude/environment-records.ts";
import { claudeRuntime, type ClaudeRuntime } from "../../../src/claude/runtime.ts";
import type { ClaudeDependencies } from "../../../src/claude/dependencies.ts";
import { Guards } from "../../../src/claude/supervise/guards.ts";
import { OPEN_POLICY } from "./open-gate.ts";

/** Options of a session of `ann`, without bounds other than those of the runtime. */
export function placementOf<T extends object>(options: T, principal = "ann") {
  return { principal, options, policy: OPEN_POLICY, environmentId: "" };
}

const guards = await Guards.find({ forceReaper: false });

const NOTHING_PROTECTED: ClaudeDependencies["protection"] = {
  closed: async () => Promise.resolve([]),
  sandbox: async ({ sandboxDomains: domains }) =>
    Promise.resolve({ domains, closed: [], writeProtected: [], configFolders: [], trusted: [] }),
};

/** A runtime that knows only the user `ann`, under `confinement`. */
export function runtimeFor(
  confinement: Partial<Confinement>,
  settings: Partial<ClaudeDependencies> = {},
): ClaudeRuntime {
  return claudeRuntime(dependenciesFor(confinement, settings));
}

/** Dependencies of a runtime that knows only the user `ann`, under `confinement`. */
export function dependenciesFor(
  confinement: Partial<Confinement>,
  settings: Partial<ClaudeDependencies> = {},
): ClaudeDependencies {
  const free = { allowDirs: [], trustDirs: [], trustsRecord: true, spawnWrapper: [], operatorOptions: false };
  return {
    environments: new EnvironmentRecords(Buffer.alloc(32), {}),
    depth: 0,
    ownCommands: () => [],
    ownUrls: async () => Promise.resolve([]),
    confine: (principal) => (principal === "ann" ? { ...free, ...confinement } : undefined),
    profiles: { of: () => ({}), readSecret: async () => Promise.resolve("") },
    protection: NOTHING_PROTECTED,
    claude: { locate: async () => Promise.resolve({ path: process.execPath, version: undefined, warning: undefined }) },
    installer: { install: async () => Promise.resolve(), sdk: () => ({ prewarm, query }) },
    guards,
    stateFolder: join(tmpdir(), "no-state"),
    server: { store: "a store", pid: process.pid, startedAt: "1" },
    spares: 0,
    // Above the default, so that a slow machine causes no failure.
    compareMs: 9_000,
    spareIdleMs: 1_000,
    masksOf: () => ({ text: (text) => text, unfinished: (text) => text }),
    log: { debug: () => undefined, info: () => undefined },
    ...settings,
  };
}
