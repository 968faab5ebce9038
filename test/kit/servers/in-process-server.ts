import { once } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { createApp } from "../../../src/app/app.ts";
import type { ConfigSources } from "../../../src/config/given-values.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { readPackage } from "../../../src/config/version.ts";

/** Runs the server of a daemon with these settings in this process. Each connection sends and receives single lines. */
export function inProcessServer({ argv, env }: Pick<ConfigSources, "argv" | "env">) {
  const config = loadConfig({ argv: [...argv, "--log-level", "silent"], env });
  const start = { cwd: () => process.cwd(), ownCommands: [], config, environment: {} };
  const app = createApp({ ...start, depth: 0, start, info: readPackage(), outlivesClients: true });
  return {
    connect() {
      const [stdin, stdout] = [new PassThrough(), new PassThrough()];
      const lines = createInterface({ input: stdout });
      app.serveClient({ start, streams: { stdin, stdout }, onClose: () => undefined });
      return {
        /** Resolves with the answer to a request, byte for byte. */
        async ask(line: string): Promise<string> {
          const answered = once(lines, "line");
          stdin.write(`${line}\n`);
          const [text] = (await answered) as [string];
          return text;
        },
        tell: (line: string) => void stdin.write(`${line}\n`),
        close: () => void stdin.end(),
      };
    },
  };
}
