import { once } from "node:events";
import { open, rm } from "node:fs/promises";
import { ConfigError } from "../../config/error.ts";
import { AppError } from "../../domain/error.ts";
import type { StoredEvent } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { oneId, oneOf, readArguments } from "./arguments.ts";
import { findSession, withStore, type SessionRecord, type Store } from "./store.ts";
import { Transcript } from "./transcript.ts";
import { count, jsonLine } from "./text-format.ts";

const FLAGS = { format: { type: "string" }, output: { type: "string" }, force: { type: "boolean" } } as const;

/** Number of events held at a time, whatever the length of the log. */
const PAGE = 32;

/** Converts a log to text, page by page. */
interface Format {
  /** `stored` is the row of an unreadable session. */
  begin(record: SessionRecord, stored: JsonObject | undefined): string;
  page(events: readonly StoredEvent[]): string;
}

const FORMATS = {
  jsonl: (): Format => ({
    begin: ({ unreadable }, stored) => (unreadable ? jsonLine({ unreadable: unreadable.why, stored }) : ""),
    page: (events) => events.map((event) => jsonLine(event)).join(""),
  }),
  markdown: (): Format => new Transcript(),
};

interface Sink {
  write(text: string | Uint8Array): Promise<void>;
  /** `whole` is true if everything was written. Otherwise an incomplete file is removed, if possible. */
  end(whole: boolean): Promise<void>;
}

/** Writes the whole log of a session to a file or to stdout. */
export async function exportLog(argv: string[]): Promise<number> {
  const { positionals, values } = readArguments("sessions export", argv, { options: FLAGS, words: "an id" });
  const id = oneId("sessions export", positionals);
  const { force = false, output } = values;
  if (force && output === undefined) throw new ConfigError("--force requires --output. Add it.");
  const format = FORMATS[oneOf("format", values.format ?? "jsonl", ["jsonl", "markdown"])]();
  const events = await withStore(values, async (store) => {
    const record = await findSession(store, id);
    const sink = output === undefined ? STDOUT : await openFile(output, force);
    return writeLog(store, record, { format, sink });
  });
  if (output !== undefined) process.stdout.write(`${count(events, "event")} written to ${output}\n`);
  return 0;
}

async function writeLog(store: Store, record: SessionRecord, to: { format: Format; sink: Sink }): Promise<number> {
  const { format, sink } = to;
  const { id, state, unreadable } = record;
  // Ends at the present last event. An unreadable row does not tell the length of its log.
  const end = unreadable ? Number.MAX_SAFE_INTEGER : state.lastEventId;
  let written = 0;
  let isWhole = false;
  try {
    await sink.write(format.begin(record, unreadable && (await store.rows.raw(id))));
    for (let next = 1; next <= end;) {
      const page = await store.log.read(id, next, Math.min(PAGE, end - next + 1));
      const last = page.at(-1);
      if (!last && !(await store.rows.raw(id)))
        throw new AppError("SESSION_NOT_FOUND", `Session ${id} was deleted in the meantime.`);
      if (!last) break;
      await sink.write(format.page(page));
      written += page.length;
      next = last.id + 1;
    }
    isWhole = true;
    return written;
  } finally {
    await sink.end(isWhole);
  }
}

export const STDOUT: Sink = {
  async write(text) {
    if (!process.stdout.write(text)) await once(process.stdout, "drain");
  },
  end: () => Promise.resolve(),
};

/** Creates a file readable by its owner only, like the store. */
export async function openFile(path: string, force: boolean): Promise<Sink> {
  const file = await open(path, force ? "w" : "wx", 0o600).catch((error: unknown) => {
    throw notWritten(path, error);
  });
  return {
    async write(text) {
      await file.writeFile(text).catch((error: unknown) => {
        throw notWritten(path, error);
      });
    },
    async end(whole) {
      await file.close();
      // With `force` the former content is lost anyway, and the path may not be a plain file.
      if (!whole && !force) await rm(path, { force: true });
    },
  };
}

function notWritten(path: string, error: unknown): AppError {
  const { code, message } = error instanceof Error && "code" in error ? error : { code: "", message: String(error) };
  if (code === "EEXIST") {
    return new AppError("INVALID_ARGUMENT", `${path} exists. Name another file, or give --force to overwrite it.`);
  }
  return new AppError("INTERNAL", `${path} cannot be written: ${message}`);
}
