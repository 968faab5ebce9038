import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { judge } from "./judge.ts";
import { serveIn } from "./world.ts";

// The server as installed. Its features must follow the protocol; tools that the suite requests by name are missing.
judge("server", async () =>
  serveIn(async (args, env) => {
    const server = spawn(process.execPath, ["dist/cli/main.js", "serve", "--toolsets", "all", ...args], { env });
    const exit = once(server, "exit");
    const end = async (): Promise<void> => {
      server.kill("SIGTERM");
      await exit;
    };
    const said: string[] = [];
    for await (const line of createInterface(server.stderr)) {
      said.push(line);
      const [url] = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line) ?? [];
      if (url === undefined) continue;
      // Drained, so that the server never blocks on a full pipe.
      server.stderr.resume();
      server.stdout.resume();
      return { url, end };
    }
    throw new Error(`the server did not start: ${said.join("\n")}`);
  }),
);
