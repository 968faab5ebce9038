/** Environment of a benchmark: a separate home and Claude configuration, and the scripted model in a process of its own. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { scriptTag } from "../dist/demo/model/script.js";
import { livingIn } from "./processes.mjs";

/** Time for closed programs to exit, ms. */
const QUIET_MS = 15_000;

export async function createWorld() {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "ccm-bench-")));
  const remove = () => rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  process.once("exit", remove);
  const config = join(home, "config");
  writeUserFile(join(home, ".config"));
  const model = fork(new URL("./model-process.mjs", import.meta.url), [config], { stdio: ["ignore", 2, 2, "ipc"] });
  const [offline] = await once(model, "message");
  const world = {
    home,
    environment: { PATH: process.env.PATH ?? "", HOME: home, ...offline },
    folder: () => mkdtempSync(join(home, "work-")),
    /**
     * Opens `gate` of a script: after the model has reached the gate in answer `entry` to the prompt that contains `mark`;
     * without `mark` at once. Resolves to the time of opening, in `sharedNow` time.
     */
    async open({ entry, gate, mark }) {
      model.send({ entry, gate, mark });
      const [at] = await once(model, "message");
      return at;
    },
    /** Lists Claude Code processes and their descendants. */
    claudes: () => livingIn(config).filter(({ command }) => !command.includes("main.js")),
    async quiet() {
      const deadline = Date.now() + QUIET_MS;
      while (livingIn(config).length > 0) {
        if (Date.now() > deadline) throw new Error(`left over: ${JSON.stringify(livingIn(config))}`);
        await sleep(50);
      }
    },
    async close() {
      await world.quiet();
      model.disconnect();
      await once(model, "exit");
      process.off("exit", remove);
      remove();
    },
  };
  return world;
}

/**
 * Writes settings for all servers with this configuration folder. Without spares unless `settings` request them, because their
 * start would distort the figures.
 */
export function writeUserFile(folder, settings = {}) {
  const own = join(folder, "claude-agents-mcp");
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "config.json"), JSON.stringify({ spares: 0, logLevel: "error", ...settings }));
}

/** Returns a prompt with the model's answers to it. */
export function prompt(...script) {
  return `go ${scriptTag(script)}`;
}
