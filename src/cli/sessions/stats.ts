import { resolve } from "node:path";
import { Tally, type Report, type Spread } from "../../usage/tally.ts";
import { readFacts } from "../../usage/reading.ts";
import { pointInTime, readArguments } from "./arguments.ts";
import { allSessions, withStoreIfAny, type SessionRecord, type Store } from "./store.ts";
import { isoTime, jsonLine, isTurnAbandoned, statusWord, count, duration, stripControls, usd } from "./text-format.ts";

const FLAGS = { cwd: { type: "string" }, since: { type: "string" }, json: { type: "boolean" } } as const;

/** Prints figures of sessions: counts, durations, error rates, tokens and cost. */
export async function stats(argv: string[]): Promise<number> {
  const { values } = readArguments("sessions stats", argv, { options: FLAGS });
  const cwd = values.cwd === undefined ? undefined : resolve(values.cwd);
  const since = values.since === undefined ? undefined : pointInTime("since", values.since, Date.now());
  const query = { ...(cwd !== undefined && { cwd }), ...(since !== undefined && { since }) };
  const tally = new Tally();
  await withStoreIfAny(
    values,
    async (store) => {
      for await (const record of allSessions(store, query)) await tallySession(store, record, since ?? 0, tally);
    },
    () => undefined,
  );
  const report = tally.report();
  const of = { ...(since !== undefined && { since: isoTime(since) }), ...(cwd !== undefined && { cwd }) };
  process.stdout.write(values.json === true ? jsonLine({ ...of, ...report }) : inWords(report));
  return 0;
}

/** Adds a session to `tally`, with its events since `since`, ms since the epoch. */
export async function tallySession(
  store: Pick<Store, "log">,
  record: SessionRecord,
  since: number,
  tally: Tally,
): Promise<void> {
  tally.session(statusWord(record), isTurnAbandoned(record) ? 0 : record.state.requests.length);
  await readFacts(store.log, record, since, tally);
}

/** Formats the figures for people: totals, then tables of tools, requests and models. */

const LABEL_WIDTH = 10;

export function inWords(report: Report): string {
  if (report.sessions.total === 0) return "No session matches.\n";
  const parts = [figures(report), tools(report), requests(report), models(report)];
  return parts.filter((part) => part !== "").join("\n");
}

function figures({ apiRetries, crashes, requests: { open }, sessions, tokens, turns }: Report): string {
  const waited = turns.waitedMs > 0 ? `; ${duration(turns.waitedMs)} in all with a request open` : "";
  const lines: [label: string, text: string][] = [
    ["Sessions", counted(sessions.total, sessions.byStatus)],
    ["Turns", counted(turns.total, turns.byOutcome)],
    ["Errors", `${percent(turns.errorRate)}${listed(turns.failuresByCategory, ": ")}`],
    ["Time", `${spread(turns.durationMs)}${waited}`],
    [
      "Tokens",
      `${whole(tokens.input)} in, ${whole(tokens.output)} out, ${whole(tokens.cache_read)} from the cache, ${whole(tokens.cache_creation)} to the cache`,
    ],
    ["Cost", usd(turns.costUsd)],
    ["Requests", `${count(open, "request")} open`],
    ["Retries", `${count(apiRetries, "retry", "retries")} of the API`],
    ["Crashes", `${count(crashes, "process", "processes")} ended unexpectedly`],
  ];
  return lines.map(([label, text]) => `${label.padEnd(LABEL_WIDTH)}${text}\n`).join("");
}

function tools(report: Report): string {
  const head = ["TOOL", "TURNS", "ERRORS", "MEDIAN", "P95", "LONGEST", "COST"];
  const lines = report.tools.map(({ costUsd, durationMs, errorRate, tool, total }) => {
    return [tool, whole(total), percent(errorRate), ...times(durationMs), usd(costUsd)];
  });
  return table(head, lines, 1);
}

function requests(report: Report): string {
  const head = ["REQUEST", "DECISION", "BY", "COUNT", "MEDIAN", "P95", "LONGEST"];
  const lines = report.requests.answered.map((each) => {
    return [each.kind, each.decision, each.by, whole(each.count), ...times(each.waitMs)];
  });
  return table(head, lines, 3);
}

function models(report: Report): string {
  return table(
    ["MODEL", "COST"],
    report.models.map(({ costUsd, model }) => [model, usd(costUsd)]),
    1,
  );
}

/** Formats a table: words aligned left, numbers right from column `numbersFrom`. Returns "" if `lines` is empty. */
export function table(head: readonly string[], lines: readonly (readonly string[])[], numbersFrom: number): string {
  if (lines.length === 0) return "";
  const shown = [head, ...lines].map((line) => line.map((cell) => stripControls(cell).replaceAll(/\s/g, " ")));
  const widths = head.map((_, n) => Math.max(...shown.map((line) => line[n]?.length ?? 0)));
  const laidOut = shown.map((line) =>
    line.map((cell, n) => (n < numbersFrom ? cell.padEnd(widths[n] ?? 0) : cell.padStart(widths[n] ?? 0))),
  );
  return laidOut.map((line) => `${line.join("  ").trimEnd()}\n`).join("");
}

function counted(total: number, parts: Readonly<Record<string, number>>): string {
  return `${whole(total)}${listed(parts, ": ")}`;
}

function listed(parts: Readonly<Record<string, number>>, before: string): string {
  const words = Object.entries(parts).map(([word, number]) => `${whole(number)} ${word}`);
  return words.length === 0 ? "" : before + words.join(", ");
}

function spread(of: Spread | null): string {
  if (!of) return "none";
  return `median ${duration(of.median)}, p95 ${duration(of.p95)}, longest ${duration(of.max)}`;
}

function times(of: Spread | null): string[] {
  return of ? [of.median, of.p95, of.max].map(duration) : ["-", "-", "-"];
}

function percent(share: number | null): string {
  return share === null ? "-" : `${(share * 100).toFixed(1)}%`;
}

function whole(number: number): string {
  return number.toLocaleString("en-US");
}
