import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { constants } from "../kit/servers/constants.ts";
import { withToken } from "./bearer.ts";
import type { Served } from "./judge.ts";

/** A running server with a temporary home folder and a single token. */

interface Started {
  /** URL of the endpoint. */
  readonly url: string;
  end(): Promise<void>;
}

/** `start` receives the arguments and environment of the server. */
export async function serveIn(
  start: (args: string[], env: Record<string, string>) => Promise<Started>,
): Promise<Served> {
  const home = mkdtempSync(join(tmpdir(), "ccm-conformance-home-"));
  const token = randomBytes(32).toString("base64url");
  const file = join(home, "token");
  writeFileSync(file, token, { mode: 0o600 });
  // `--rate-limit` is high, because all clients of the suite are one principal.
  const limits = ["--rate-limit", "100000"];
  const args = ["--http", "127.0.0.1:0", "--token-file", file, "--store", "memory:", ...limits, "--drain-ms", "0"];
  const env = { HOME: home, PATH: process.env["PATH"] ?? "", ...constants({ maxStreams: 1000 }) };
  const started = await start(args, env);
  const served = await withToken(started.url, token);
  return {
    url: served.url,
    close: async () => {
      await served.close();
      await started.end();
      rmSync(home, { recursive: true });
    },
  };
}
