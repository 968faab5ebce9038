import { z } from "zod";
import { approverFields } from "./approvals/approver-fields.ts";
import { serverFields } from "./server.ts";
import type { SettingClass } from "./schemaless-checks.ts";
import { named, path, settingOf, storeLocation, type Setting } from "./setting.ts";
import { termFields } from "./terms.ts";

/**
 * Settings that a client's process reads before it connects. The proxy reads them without this table
 * (`src/proxy/own-server.ts`).
 */
const clientFields = {
  daemon: named(/^\w[\w.-]{0,79}$/, {
    placeholder: "auto|off|<name>",
    allowed: 'auto, off, or a name of letters, digits, ".", "_" and "-"',
    fallback: "auto; off on Windows",
    flag: "daemon",
    variable: "CLAUDE_CODE_MCP_DAEMON",
    meaning:
      "Daemon that the client uses. With auto, sessions run in a daemon of the user, which starts by itself, is shared by the clients of a store, and goes on when they end. With off, the client has a server of its own, which interrupts its turns when the client ends. Any other name selects a daemon that an operator has started under it (daemon run --daemon NAME).",
  }),
  store: storeLocation("a file in your state folder", {
    flag: "store",
    variable: "CLAUDE_CODE_MCP_STORE",
    meaning:
      "File in which sessions are kept, or a PostgreSQL database. With postgres://USER@HOST/DATABASE, servers of several machines share their sessions: docs/machines.md. memory: keeps sessions only while the server runs.",
  }),
  storePasswordFile: path("your password file: ~/.pgpass", {
    flag: "store-password-file",
    variable: "CLAUDE_CODE_MCP_STORE_PASSWORD_FILE",
    meaning:
      "File with the password of --store postgres://... Nobody else may have access to the file. A URL with a password is refused.",
  }),
};

/**
 * Every setting of the server, once. Parsing of flags, variables and files, the help text and docs/configuration.md are derived
 * from `fields`. Add a setting only if it has an effect.
 */
const fields = { ...termFields, ...serverFields, ...clientFields };

/** Settings of approvers, checked here and read by their approvers only. */
const APPROVER_FIELDS: object = approverFields;

/** Settings as the program uses them: checked, complete, frozen. Every `...Ms` is in ms, every path absolute. */
export const Config = z.strictObject({ ...APPROVER_FIELDS, ...fields }).readonly();
export type Config = z.output<typeof Config>;

/** Settings that belong to a connection. */
export type Terms = Pick<Config, keyof typeof termFields>;

/** Not allowed in a file: a file cannot give its own path. */
export const CONFIG_FILE: Setting = {
  key: "config",
  inFile: false,
  flag: "config",
  variable: "CLAUDE_CODE_MCP_CONFIG",
  of: "client",
  reading: "path",
  placeholder: "<path>",
  allowed: "a path",
  fallback: "none",
  meaning: "JSON file with settings of this client or server.",
};

function settingsIn(all: Readonly<Record<string, z.ZodType>>, of: SettingClass): Setting[] {
  return Object.entries(all).map(([key, schema]) => settingOf(key, of, schema));
}

/** All settings, in the order of the help text. */
export const SETTINGS: readonly Setting[] = [
  ...settingsIn(termFields, "term"),
  ...settingsIn({ ...serverFields, ...approverFields }, "server"),
  ...settingsIn(clientFields, "client"),
  CONFIG_FILE,
];
