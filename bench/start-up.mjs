import { spawn } from "node:child_process";
import { once } from "node:events";

import { serverProgram } from "./server.mjs";

const BASE = "node -e 0, from its start to its end";

export const startUp = {
  name: "start-up",
  about: "from the start of the server to its first answers",
  rows: [
    { row: "initialize is answered", of: "initialize", base: BASE, unit: "ms", atMost: 2.5 },
    { row: "initialize and tools/list are answered", of: "tools/list", base: BASE, unit: "ms" },
  ],
  async run({ figures, progress, rounds, world }) {
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      await figures.timed(BASE, async () => once(spawn(process.execPath, ["-e", "0"]), "exit"));
      const began = performance.now();
      const server = serverProgram(world);
      await server.connect();
      figures.note("initialize", performance.now() - began);
      await server.client.listTools();
      figures.note("tools/list", performance.now() - began);
      await server.client.close();
    }
  },
};
