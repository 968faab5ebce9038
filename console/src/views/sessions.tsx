import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { SessionRow } from "../../../src/console/wire.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Problem } from "../parts/problem.tsx";
import { FilterBar } from "../sessions/filter-bar.tsx";
import { isUnfiltered, type Filters, filtersOf, queryOf } from "../sessions/filters.ts";
import { holdRows, isLoading, listing, loadMore, problem, reload, show, watch } from "../sessions/list.ts";
import { Row } from "../sessions/row.tsx";
import { startPlaceRestorer, type PlaceRestorer } from "../sessions/scroll.ts";
import { hrefOf, query, replaceQuery } from "../state/route.ts";
import { may } from "../state/me.ts";
import type { RefObject } from "preact";
import { bindKeys } from "../state/keys.ts";
import styles from "../sessions/sessions.module.css";
import view from "./view.module.css";

export function SessionsView() {
  const filters = filtersOf(query.value);
  const asked = queryOf(filters).toString();
  useEffect(watch, []);
  useFilteredList(asked);
  usePlaceRestorer();
  const isEmpty = listing.value?.rows.length === 0 && isUnfiltered(listing.value.filters) && isUnfiltered(filters);
  return (
    <div class={view["view"]}>
      <div class={view["head"]}>
        <h1>Sessions</h1>
        <Tally />
      </div>
      {!isEmpty && <FilterBar filters={filters} change={change} />}
      <Problem of={problem.value} what="The list could not be loaded">
        <ActionButton act={reload}>Try again</ActionButton>
      </Problem>
      <List clear={() => replaceQuery(new URLSearchParams())} />
    </div>
  );
}

/** Debounce of the search while the user types, ms. */
const TYPING_MS = 250;

/**
 * Calls `show` for the filters in the address. Typed text is in the address at once, so that "back" restores the text, but is
 * searched after `TYPING_MS`.
 */
function useFilteredList(asked: string): void {
  const textRef = useRef(filtersOf(query.value).text);
  useEffect(() => {
    const filters = filtersOf(new URLSearchParams(asked));
    const isTyped = filters.text !== textRef.current;
    textRef.current = filters.text;
    const timer = setTimeout(() => void show(filters), isTyped ? TYPING_MS : 0);
    return () => clearTimeout(timer);
  }, [asked]);
}

function usePlaceRestorer(): void {
  const returningRef = useRef<PlaceRestorer>(undefined);
  useLayoutEffect(() => {
    returningRef.current = startPlaceRestorer();
    return () => returningRef.current?.end();
  }, []);
  // Runs after each render of the list.
  useLayoutEffect(() => returningRef.current?.restore());
}

function change(to: Partial<Filters>): void {
  replaceQuery(queryOf({ ...filtersOf(query.value), ...to }));
}

function List({ clear }: { readonly clear: () => void }) {
  const now = listing.value;
  if (!now) return problem.value === undefined ? <Skeleton /> : null;
  if (now.rows.length === 0) return isUnfiltered(now.filters) ? <NoSessions /> : <NoMatches clear={clear} />;
  return (
    <>
      <Rows rows={now.rows} />
      {now.next !== undefined && (
        <p class={styles["more"]}>
          <ActionButton act={loadMore}>Load more</ActionButton>
        </p>
      )}
    </>
  );
}

function Rows({ rows }: { readonly rows: readonly SessionRow[] }) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => bindRowKeys(list), []);
  useEffect(() => () => holdRows(false), []);
  return (
    <ul
      ref={list}
      class={styles["list"]}
      aria-label="Sessions, the newest first"
      aria-busy={isLoading.value}
      onPointerEnter={({ pointerType }) => holdRows(pointerType === "mouse")}
      onPointerLeave={() => holdRows(false)}
      onFocusIn={() => holdRows(true)}
      onFocusOut={() => holdRows(false)}
    >
      {rows.map((row) => (
        <Row key={row.id} row={row} />
      ))}
    </ul>
  );
}

/** Number of listed sessions; "+" if there are more. */
function Tally() {
  const now = listing.value;
  const words = now ? `${String(now.rows.length)}${now.next === undefined ? "" : "+"}` : "";
  return (
    <p class="soft number" role="status">
      {words}
      <span class="visually-hidden">{now && " shown"}</span>
    </p>
  );
}

function Skeleton() {
  return (
    <div class={styles["skeleton"]} role="status">
      <span class="visually-hidden">Loading…</span>
      {[1, 2, 3, 4, 5].map((n) => (
        <div key={n} />
      ))}
    </div>
  );
}

function NoSessions() {
  return (
    <div class={styles["none"]}>
      <h2>No sessions yet</h2>
      <p>
        A session is a task that Claude Code works on in the background. It continues when you leave; this page shows
        its progress and its requests.
      </p>
      {may("run") ? (
        <p>
          <a class="button primary" href={hrefOf({ view: "start" })}>
            Start a session
          </a>
        </p>
      ) : (
        <p>Sessions that your MCP client starts appear here.</p>
      )}
    </div>
  );
}

function NoMatches({ clear }: { readonly clear: () => void }) {
  return (
    <div class={styles["none"]}>
      <h2>No matching sessions</h2>
      <p>No session matches the search and the filters above.</p>
      <p>
        <button type="button" onClick={clear}>
          Clear all filters
        </button>
      </p>
    </div>
  );
}

/** Binds j and k to move through the list; Enter opens the focused link. */
function bindRowKeys(list: RefObject<HTMLElement | null>): () => void {
  const step = (by: 1 | -1) => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>("a[data-row]") ?? [])];
    const at = links.findIndex((link) => link === document.activeElement);
    const to = at === -1 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1);
    links[to]?.focus({ preventScroll: true });
    links[to]?.scrollIntoView({ block: "nearest" });
  };
  return bindKeys({ j: () => step(1), k: () => step(-1) });
}
