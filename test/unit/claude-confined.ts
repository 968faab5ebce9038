import type { Confinement } from "../../src/domain/principal.ts";
import { claudeRuntime } from "../../src/claude/runtime.ts";
import type { ClaudeSettings } from "../../src/claude/settings.ts";
import type { AgentRuntime } from "../../src/engine/ports.ts";

/** A runtime that knows ann, under these terms, and nobody else. */
export function runtimeFor(confinement: Partial<Confinement>, settings: Partial<ClaudeSettings> = {}): AgentRuntime {
  const free = { allowDirs: [], trustDirs: [], trustsRecord: true, spawnWrapper: [], operatorOptions: false };
  return claudeRuntime({
    environment: {},
    depth: 0,
    mayNest: false,
    ownCommands: [],
    ownUrls: [],
    confine: (principal) => (principal === "ann" ? { ...free, ...confinement } : undefined),
    claudePath: process.execPath,
    forceReaper: false,
    spares: 0,
    spareIdleMs: 1_000,
    rules: { ask: [], deny: [] },
    mask: (text) => text,
    log: { debug: () => undefined },
    ...settings,
  });
}
