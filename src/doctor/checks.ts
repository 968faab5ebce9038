import { checkClaudeSettings } from "./claude-settings.ts";
import { checkClients } from "./clients.ts";
import type { Check, Finding } from "./finding.ts";
import { checkDisk, checkStateFolder, checkTemporary, checkTrust } from "./check-folders.ts";
import type { Machine } from "./machine.ts";
import { checkPackages } from "./packages.ts";
import { checkPlan } from "./plan.ts";
import { checkDaemons, checkLeftovers, checkPort, checkShims } from "./processes.ts";
import { checkClaude, checkNode, checkSandbox, checkSettings } from "./check-runtime.ts";
import { checkStore, STORE_MS } from "./store.ts";

/** All checks, in the order of their findings. */
export const CHECKS: readonly Check[] = [
  { id: "node", subject: "Node", ms: 1_000, find: checkNode },
  { id: "settings", subject: "the settings", ms: 1_000, find: checkSettings },
  { id: "claude", subject: "Claude Code and its login", ms: 30_000, find: checkClaude },
  { id: "claude-settings", subject: "Claude Code's settings files", ms: 15_000, find: checkClaudeSettings },
  { id: "packages", subject: "the Agent SDK", ms: 30_000, find: checkPackages },
  { id: "state-folder", subject: "the state folder", ms: 5_000, find: checkStateFolder },
  { id: "store", subject: "the store", ms: STORE_MS + 5_000, find: checkStore },
  { id: "plan", subject: "plan windows and budgets", ms: STORE_MS + 5_000, find: checkPlan },
  { id: "disk", subject: "the disk", ms: 10_000, find: checkDisk },
  { id: "temporary-files", subject: "temporary files", ms: 5_000, find: checkTemporary },
  { id: "daemons", subject: "daemons", ms: 10_000, find: checkDaemons },
  { id: "shims", subject: "shims", ms: 5_000, find: checkShims },
  { id: "leftover-processes", subject: "processes of dead servers", ms: 10_000, find: checkLeftovers },
  { id: "port", subject: "the port of --http", ms: 5_000, find: checkPort },
  { id: "clients", subject: "entries of MCP clients", ms: 15_000, find: checkClients },
  { id: "trust", subject: "trust of this folder", ms: 5_000, find: checkTrust },
  { id: "sandbox", subject: "the sandbox", ms: 15_000, find: checkSandbox },
];

/** Time after which a check is reported as slow, ms. */
const SLOW_MS = 1_000;

/**
 * Runs all checks concurrently, each within its time limit; never rejects. Calls `onSlow` with the subject of each check longer
 * than `SLOW_MS`.
 */
export async function examine(
  machine: Machine,
  onSlow: (subject: string) => void,
  checks: readonly Check[] = CHECKS,
): Promise<Finding[]> {
  return (await Promise.all(checks.map(async (check) => within(check, machine, onSlow)))).flat();
}

async function within({ find, id, ms, subject }: Check, machine: Machine, onSlow: (subject: string) => void) {
  const slow = setTimeout(() => onSlow(subject), Math.min(SLOW_MS, ms));
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding[]>((resolve) => {
    const text = `The check of ${subject} did not end within ${String(ms / 1000)} s. A disk or a program may hang.`;
    timer = setTimeout(() => resolve([{ id, level: "error", text }]), ms);
  });
  try {
    return await Promise.race([find(machine), late]);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const found: Finding = { id, level: "error", text: `The check of ${subject} failed: ${why}` };
    return [found];
  } finally {
    clearTimeout(slow);
    clearTimeout(timer);
  }
}
