import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { World } from "../world.ts";
import { runSessions, type CommandResult } from "./sessions-command.ts";

/** `sessions` in the home of a world's servers, and in other homes: machines between which a session moves. */

export type RunSessions = (...args: string[]) => Promise<CommandResult>;

export class TwoHomes {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** Runs `sessions` in the home of the world's servers. */
  here: RunSessions = async (...args) => runSessions(args, { ...this.#world.environment });

  /** Makes another home, with a configuration folder of its own. */
  another(more: Readonly<Record<string, string>> = {}) {
    const home = realpathSync(this.#world.folder());
    const environment = { HOME: home, CLAUDE_CONFIG_DIR: join(home, "claude"), ...more };
    const run: RunSessions = async (...args) => runSessions(args, { ...this.#world.environment, ...environment });
    return { environment, home, run };
  }

  /** Packs a session of the world's servers. */
  async pack(sessionId: string): Promise<{ file: string; notes: string }> {
    const file = join(this.#world.folder(), "s.session");
    const { status, stderr } = await this.here("pack", sessionId, "--output", file);
    if (status !== 0) throw new Error(stderr);
    return { file, notes: stderr };
  }
}

export async function exportedLog(run: RunSessions, sessionId: string) {
  const lines = (await run("export", sessionId)).stdout.trim().split("\n");
  return lines.map((line) => JSON.parse(line) as { id: number; type: string; data: object });
}
