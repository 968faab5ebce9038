import { createRequire } from "node:module";
import type { pino as Pino } from "pino";
import type { JsonObject } from "../domain/json.ts";
import type { Masker } from "./mask.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
type Level = (typeof LEVELS)[number];

type Log = (message: string, fields?: JsonObject) => void;
/** The engine's `Logger`, which this room may not import. */
type LineLogger = Readonly<Record<Level, Log>>;

export interface LoggerOptions {
  /** The least level that is written. */
  readonly level: Level | "silent";
  readonly masker: Masker;
}

/**
 * Writes JSON lines to stderr and nowhere else, masked, each before its call returns. Logging never throws and never
 * stops the server: lines that a full or closed stderr does not take wait in a bounded buffer, then are dropped.
 */
export function createLogger({ level, masker }: LoggerOptions): LineLogger {
  let sink: Pino.Logger | undefined;
  const least = level === "silent" ? LEVELS.length : LEVELS.indexOf(level);
  const log = (at: Level): Log => {
    if (LEVELS.indexOf(at) < least) return () => undefined;
    return (message, fields = {}) => {
      sink ??= openSink(level);
      sink[at](masker.fields(fields), masker.text(message));
    };
  };
  return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
}

const WAITING_BYTES = 1_048_576;
const RETRY_MS = 100;

/** pino costs 20 ms, so it is loaded at the first line; as a CommonJS package it can be at once, so no line has to wait. */
const require: (name: "pino") => typeof Pino = createRequire(import.meta.url);

function openSink(level: Level | "silent"): Pino.Logger {
  const pino = require("pino");
  // Node makes a pipe on stderr non-blocking when it opens the stream: a client that does not read cannot hold us up.
  process.stderr.on("error", ignore);
  const destination = pino.destination({ dest: 2, sync: true, maxLength: WAITING_BYTES, retryEAGAIN: () => false });
  let retry: NodeJS.Timeout | undefined;
  destination.on("error", () => {
    clearTimeout(retry);
    retry = setTimeout(() => destination.write(""), RETRY_MS).unref();
  });
  return pino(
    {
      level,
      // Not `pid`: fields name the process ids of Claude Code so.
      base: { server: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
}

function ignore(): void {
  // There is nowhere left to say that stderr is gone.
}
