import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ConfigError } from "../../config/error.ts";
import { stateFolder } from "../../config/state-folder.ts";
import { logFolder, logPath } from "../../daemon/start-daemon.ts";

/** Interval of polls for new lines, ms. */
const POLL_MS = 250;

interface Flags {
  readonly positionals: readonly string[];
  readonly values: { readonly follow?: boolean | undefined };
}

/** Prints the log of a daemon, running or ended; by default the log written last. Exit code 1 if there is none. */
export async function logs({ positionals, values }: Flags): Promise<number> {
  const [name, ...others] = positionals;
  if (others.length > 0) throw new ConfigError("daemon logs: prints one log at a time. Name one daemon.");
  const folder = stateFolder(process.env, process.platform);
  const log = name === undefined ? await findNewestLog(logFolder(folder)) : logPath(folder, name);
  const length = log === undefined ? undefined : await fileSize(log);
  if (log === undefined || length === undefined) {
    const absent = name === undefined ? "No daemon has written a log." : `No daemon "${name}" has written a log.`;
    process.stderr.write(`${absent} A daemon started by \`daemon run\` logs to its stderr.\n`);
    return 1;
  }
  process.stdout.on("error", () => process.exit(0));
  let printed = await print(log, 0);
  while (values.follow === true) {
    await sleep(POLL_MS);
    const now = await fileSize(log);
    // The log was truncated because of its length, or deleted.
    if (now === undefined) return 0;
    try {
      printed = await print(log, now < printed ? 0 : printed);
    } catch {
      return 0;
    }
  }
  return 0;
}

/** Returns the newest log of a daemon. Skips the logs of shims in the folder. */
async function findNewestLog(folder: string): Promise<string | undefined> {
  const all = await readdir(folder).catch(() => []);
  const files = all.filter((file) => file.endsWith(".log") && !file.endsWith(".shim.log"));
  const dated = await Promise.all(
    files.map(async (file) => ({ path: join(folder, file), at: (await stat(join(folder, file))).mtimeMs })),
  );
  return dated.toSorted((one, other) => other.at - one.at)[0]?.path;
}

async function fileSize(log: string): Promise<number | undefined> {
  return (await stat(log).catch(() => undefined))?.size;
}

/** Resolves to the position after the printed text. */
async function print(log: string, from: number): Promise<number> {
  let at = from;
  const chunks: AsyncIterable<Buffer> = createReadStream(log, { start: from });
  for await (const chunk of chunks) {
    process.stdout.write(chunk);
    at += chunk.length;
  }
  return at;
}
