import { SESSION_STATUSES } from "../parts/status-words.ts";
import type { SessionStatus } from "../../../src/domain/session.ts";
import type { SessionRow } from "../../../src/console/wire.ts";

/** Filters of the list, kept in the address, so that "back" and a reload restore the filters. */
export interface Filters {
  readonly statuses: readonly SessionStatus[];
  readonly text: string;
  /** "" for any directory. */
  readonly cwd: string;
}

export function filtersOf(query: URLSearchParams): Filters {
  const asked = query.getAll("status");
  return {
    statuses: SESSION_STATUSES.filter((status) => asked.includes(status)),
    text: query.get("text") ?? "",
    cwd: query.get("cwd") ?? "",
  };
}

export function queryOf({ statuses, text, cwd }: Filters): URLSearchParams {
  const query = new URLSearchParams();
  for (const status of statuses) query.append("status", status);
  if (text !== "") query.set("text", text);
  if (cwd !== "") query.set("cwd", cwd);
  return query;
}

export function isUnfiltered({ statuses, text, cwd }: Filters): boolean {
  return statuses.length === 0 && text.trim() === "" && cwd === "";
}

/** Checks `statuses` and `cwd`. Only the server can match `text`. */
export function matchesRow({ statuses, cwd }: Filters, row: SessionRow): boolean {
  return (statuses.length === 0 || statuses.includes(row.status)) && (cwd === "" || cwd === row.cwd);
}
