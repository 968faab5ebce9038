import { expect, it } from "vitest";

import { remove } from "../../src/cli/sessions/delete.ts";
import { exportLog } from "../../src/cli/sessions/export.ts";
import { list } from "../../src/cli/sessions/list.ts";
import { show } from "../../src/cli/sessions/show.ts";
import { ConfigError } from "../../src/config/error.ts";

/** Invalid command lines of `sessions`; `test/server/sessions.test.ts` shows the resulting output. */

const VERBS = { list, show, export: exportLog, delete: remove };

it.each<[keyof typeof VERBS, string[], string]>([
  ["list", ["--max-wait-ms", "5"], "sessions list: Unknown option '--max-wait-ms'. It takes --status, "],
  ["list", ["--status", "busy"], '--status is "busy": must be one of running, waiting_permission, idle, '],
  ["list", ["--limit", "0"], '--limit is "0": must be a whole number from 1 to 10000.'],
  ["list", ["--since", "soon"], '--since is "soon": must be like 30m, 12h, 7d or 2w, or a date like 2026-01-31.'],
  ["list", ["x"], 'sessions list: unexpected argument "x".'],
  ["list", ["--store", "memory:"], 'The store is "memory:": '],
  ["list", ["--store="], '--store is "": must be '],
  ["list", ["--config", "/nonexistent.json"], "The file of --config cannot be read: "],
  ["show", [], "sessions show needs the id of a session, or its start."],
  ["show", ["a", "b"], "sessions show takes one id, not 2."],
  ["export", ["x", "--format", "pdf"], '--format is "pdf": must be one of jsonl, markdown.'],
  ["export", ["x", "--force"], "--force requires --output. Add it."],
  ["delete", ["x", "--older-than", "30d"], "sessions delete needs the ids of sessions, or else --older-than, "],
])("sessions %s %j is refused", async (verb, args, beginning) => {
  const refused: unknown = await VERBS[verb](args).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ConfigError);
  const { message } = refused as ConfigError;
  expect(message.slice(0, beginning.length)).toBe(beginning);
  expect(message).not.toContain("\n");
});
