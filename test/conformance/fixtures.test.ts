import { createApp } from "../../src/app/app.ts";
import { loadConfig } from "../../src/config/load.ts";
import { fixtures } from "./fixtures.ts";
import { judge } from "./judge.ts";
import { serveIn } from "./world.ts";

// Every feature of the protocol passes through our HTTP layer: guards, limits, transport, MCP sessions.
judge("fixtures", async () =>
  serveIn(async (argv, env) => {
    const app = createApp({
      config: loadConfig({ argv: [...argv, "--log-level", "error"], env }),
      environment: env,
      depth: 0,
      start: { cwd: () => process.cwd(), ownCommands: [] },
      info: { name: "conformance", version: "0.0.0" },
    });
    const serving = app.serveHttp(fixtures(async () => (await serving).notify));
    return { url: (await serving).url, end: async () => app.close() };
  }),
);
