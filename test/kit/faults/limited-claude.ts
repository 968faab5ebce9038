import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { bundledClaudes } from "../../../src/claude/claude-files.ts";

const DEAF = join(import.meta.dirname, "deaf-claude.mjs");

/**
 * Returns the variable that makes a server start the real Claude Code with a budget of its own, which no option of a session
 * sets. A `deaf` Claude Code stops no task.
 */
export function limitedClaude(folder: string, budgetUsd: number, { deaf = false } = {}): Record<string, string> {
  const [claude = ""] = bundledClaudes();
  const path = join(folder, "claude");
  const program = deaf ? `'${process.execPath}' '${DEAF}' '${claude}'` : `'${claude}'`;
  writeFileSync(path, `#!/bin/sh\nexec ${program} "$@" --max-budget-usd ${String(budgetUsd)}\n`, { mode: 0o755 });
  return { CLAUDE_CODE_MCP_CLAUDE_PATH: path };
}
