/** What a benchmark runs in: a home and a Claude configuration of its own, and the scripted model in a process of its own. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { scriptTag } from "../dist/demo/model/script.js";
import { livingIn } from "./processes.mjs";

/** How long what was closed may take to be gone, ms. */
const QUIET_MS = 15_000;

export async function createWorld() {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "ccm-bench-")));
  const remove = () => rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  process.once("exit", remove);
  const config = join(home, "config");
  const model = fork(new URL("./model-process.mjs", import.meta.url), [config], { stdio: ["ignore", 2, 2, "ipc"] });
  const [offline] = await once(model, "message");
  const world = {
    home,
    environment: { PATH: process.env.PATH ?? "", HOME: home, ...offline },
    folder: () => mkdtempSync(join(home, "work-")),
    /** Claude Codes, and whatever else they have started. */
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

/** A prompt with the answers that the model gives to it. */
export function prompt(...script) {
  return `go ${scriptTag(script)}`;
}
