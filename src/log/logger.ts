import { createRequire } from "node:module";
import type { pino as Pino } from "pino";
import type { JsonObject } from "../domain/json.ts";
import type { Masker } from "./mask.ts";

const LEVELS = ["debug", "info", "warn", "error"] as const;
type Level = (typeof LEVELS)[number];

type Log = (message: string, fields?: JsonObject) => void;
/** Repeats the engine's `Logger`, because this folder must not import the engine. */
type LineLogger = Readonly<Record<Level, Log>>;

export interface LoggerOptions {
  /** Minimum level of written lines. */
  readonly level: Level | "silent";
  readonly masker: Masker;
}

/**
 * Writes masked JSON lines to stderr only, each before its call returns. Never throws and never stops the server: lines that a
 * full or closed stderr does not accept wait in a buffer of `WAITING_BYTES`, then are dropped.
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

/** Loads pino with the first line, because loading takes 20 ms. pino is CommonJS, so `require` can load it synchronously. */
const require: (name: "pino") => typeof Pino = createRequire(import.meta.url);

function openSink(level: Level | "silent"): Pino.Logger {
  const pino = require("pino");
  // Node makes a pipe on stderr non-blocking when `process.stderr` is opened: a client that does not read cannot block the
  // server.
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
      // Not `pid`: fields use `pid` for processes of Claude Code.
      base: { server: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
}

function ignore(): void {
  // Nothing can be reported once stderr is gone.
}
