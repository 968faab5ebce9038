import { resolve } from "node:path";
import { SessionStatus } from "../../domain/session.ts";
import { oneOf, pointInTime, readArguments, wholeNumber } from "./arguments.ts";
import { readRow, summary, table, type Row } from "./rows.ts";
import { allSessions, withStoreIfAny, type Store } from "./store.ts";
import { oneLine, jsonLine, statusWord, type StatusWord } from "./text-format.ts";

const FLAGS = {
  status: { type: "string", multiple: true },
  cwd: { type: "string" },
  since: { type: "string" },
  text: { type: "string" },
  limit: { type: "string" },
  json: { type: "boolean" },
} as const;

const [LIMIT, MAX_LIMIT] = [50, 10_000];
const STATUS_WORDS: readonly StatusWord[] = [...SessionStatus.options, "abandoned"];
/** Recorded statuses of a turn whose server is gone. */
const UNFINISHED: readonly SessionStatus[] = ["running", "waiting_permission"];

/** Maximum length of the prompt in JSON, characters. */
const PROMPT_JSON = 200;

interface FoundRows {
  readonly rows: readonly Row[];
  readonly more: boolean;
}

/** Prints matching sessions, newest first. */
export async function list(argv: string[]): Promise<number> {
  const { values } = readArguments("sessions list", argv, { options: FLAGS });
  const { cwd, since, status, text } = values;
  const limit = values.limit === undefined ? LIMIT : wholeNumber("limit", values.limit, MAX_LIMIT);
  const words = status?.map((word) => oneOf("status", word, STATUS_WORDS));
  const query = {
    ...(words && { statuses: words.flatMap((word) => (word === "abandoned" ? UNFINISHED : [word])) }),
    ...(cwd !== undefined && { cwd: resolve(cwd) }),
    ...(since !== undefined && { since: pointInTime("since", since, Date.now()) }),
    ...(text !== undefined && { text }),
  };
  const isNarrow = Object.keys(query).length > 0;
  const answer = await withStoreIfAny(
    values,
    async (store) => {
      const found = await findRows(store, query, { limit, words });
      if (values.json === true) return inJson(found);
      if (found.rows.length === 0) return isNarrow ? "No session matches.\n" : "No sessions yet.\n";
      return table(found.rows, Date.now()) + moreLine(found);
    },
    (file) => (values.json === true ? inJson({ rows: [], more: false }) : `No sessions yet: there is no ${file}.\n`),
  );
  process.stdout.write(answer);
  return 0;
}

interface RowLimits {
  readonly limit: number;
  readonly words: readonly StatusWord[] | undefined;
}

async function findRows(
  store: Store,
  query: Parameters<typeof allSessions>[1],
  { limit, words }: RowLimits,
): Promise<FoundRows> {
  const rows: Row[] = [];
  for await (const record of allSessions(store, query)) {
    if (words?.includes(statusWord(record)) === false) continue;
    if (rows.length === limit) return { rows, more: true };
    rows.push(await readRow(store, record));
  }
  return { rows, more: false };
}

function moreLine({ more, rows }: FoundRows): string {
  if (!more) return "";
  const advice = "Narrow it with --status, --cwd, --since or --text, or raise --limit.";
  return `\nShowing the newest ${String(rows.length)}; there are more. ${advice}\n`;
}

function inJson({ more, rows }: FoundRows): string {
  const sessions = rows.map(({ prompt, record }) => ({ ...summary(record), prompt: oneLine(prompt, PROMPT_JSON) }));
  return jsonLine({ sessions, more });
}
