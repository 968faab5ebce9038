import { createReadStream } from "node:fs";
import { ConfigError } from "../../config/error.ts";
import { nodeName } from "../../config/nodes.ts";
import { AppError } from "../../domain/error.ts";
import { readArguments } from "./arguments.ts";
import { refuseNested } from "./pack.ts";
import { readStoreSettings, withStoreAt } from "./store.ts";
import { untilStopped } from "./until-stopped.ts";

const FLAGS = { cwd: { type: "string" }, "keep-approvals": { type: "boolean" }, node: { type: "string" } } as const;

/** Takes a packed session over into store, configuration folder and a folder of this machine. */
export async function unpack(argv: string[]): Promise<number> {
  const { positionals, values } = readArguments("sessions unpack", argv, { options: FLAGS, words: "a file" });
  const [path, ...others] = positionals;
  if (path === undefined || others.length > 0)
    throw new ConfigError("sessions unpack needs one file of sessions pack.");
  const { cwd: folder, "keep-approvals": keepsApprovals = false } = values;
  refuseNested("unpack");
  const settings = readStoreSettings(values);
  return withStoreAt(settings, async (store) => {
    const [{ unpackSession }, { localEnvironment }] = await Promise.all([
      import("../../pack/unpack-session.ts"),
      import("../../pack/local-source.ts"),
    ]);
    const target = {
      store,
      folder,
      base: process.cwd(),
      environmentOf: (options: Parameters<typeof localEnvironment>[0]) =>
        localEnvironment(options, settings.config.profiles),
      keepsApprovals,
      node: nodeName(settings.config),
    };
    const { cwd, isClosed, notes, sessionId } = await untilStopped(async (stop) =>
      unpackSession(read(path, stop), { ...target, stop }),
    );
    const next = isClosed ? "It is closed, as it was." : "It goes on with your next reply.";
    process.stdout.write(`Session ${sessionId} is unpacked in ${cwd}. ${next}\n`);
    for (const note of notes) process.stdout.write(`${note}\n`);
    return 0;
  });
}

/** "-" is stdin. */
async function* read(path: string, stop: AbortSignal): AsyncGenerator<Buffer> {
  const file = path === "-" ? process.stdin : createReadStream(path);
  try {
    for await (const bytes of file as AsyncIterable<Buffer>) {
      stop.throwIfAborted();
      yield bytes;
    }
  } catch (error) {
    stop.throwIfAborted();
    const why = error instanceof Error ? error.message : String(error);
    throw new AppError("INVALID_ARGUMENT", `file: ${path} cannot be read: ${why}. Name a file of sessions pack.`);
  }
}
