import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { EnvironmentRecords } from "../../../src/claude/environment-records.ts";
import type { Engine } from "../../../src/engine/api.ts";
import { systemClock } from "../../../src/app/system-clock.ts";
import { createEngine } from "../../../src/engine/engine.ts";
import type { SessionBackend } from "../../../src/engine/ports.ts";
import type { World } from "../world.ts";
import { runtimeFor } from "./confined-runtime.ts";
import { OPERATOR } from "./open-gate.ts";

/** An engine with the real Claude Code, as one node of a store. */
export interface ClaudeNode {
  readonly engine: Engine;
  readonly backend: SessionBackend;
  readonly configFolder: string;
  /** Messages of this node at level `warn`. */
  readonly complaints: string[];
  /** Ends the node as a regular shutdown does. */
  close(): Promise<void>;
}

/** Starts a node with a configuration folder of its own, and `more` variables. It knows the user `ann` only. */
export function claudeNode(world: World, backend: SessionBackend, more: Record<string, string> = {}): ClaudeNode {
  const configFolder = mkdtempSync(join(world.configFolder, "node-"));
  const own = { PATH: process.env["PATH"], ...world.environment, CLAUDE_CONFIG_DIR: configFolder, ...more };
  const node = backend.machines?.self.name;
  const runtime = runtimeFor(
    {},
    {
      environments: new EnvironmentRecords(Buffer.alloc(32), own),
      claude: { locate: async () => Promise.resolve({ path: undefined, version: undefined, warning: undefined }) },
      node,
    },
  );
  const complaints: string[] = [];
  const silent = (): void => undefined;
  const engine = createEngine({
    ...OPERATOR,
    backend,
    runtime,
    clock: systemClock,
    log: { debug: silent, info: silent, error: silent, warn: (message) => void complaints.push(message) },
    mask: (event) => event,
    receipts: false,
    processLimits: { maxLive: 9, maxStarting: 9, maxBackground: 9 },
    retention: { maxAgeMs: 1e12, maxBytes: 1e9, everyMs: 3_600_000 },
  });
  return { engine, backend, configFolder, complaints, close: async () => engine.drain() };
}
