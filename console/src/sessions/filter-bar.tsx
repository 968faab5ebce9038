import { useLayoutEffect, useRef } from "preact/hooks";
import { SESSION_STATUSES, STATUS_WORDS } from "../parts/status-words.ts";
import type { SessionStatus } from "../../../src/domain/session.ts";
import { shortPath } from "../parts/format.ts";
import { displayLine } from "../parts/text.ts";
import type { Filters } from "./filters.ts";
import { directories } from "./list.ts";
import { isSearchRequested } from "../state/keys.ts";
import styles from "./sessions.module.css";

interface Bar {
  readonly filters: Filters;
  /** Must be stable across renders. */
  readonly change: (to: Partial<Filters>) => void;
}

export function FilterBar({ filters, change }: Bar) {
  return (
    <search class={styles["filters"]}>
      <SearchField text={filters.text} change={change} />
      <DirectoryField cwd={filters.cwd} change={(cwd) => change({ cwd })} />
      <fieldset>
        <legend class="visually-hidden">Status</legend>
        {SESSION_STATUSES.map((status) => (
          <label key={status} class={styles["status"]}>
            <input
              type="checkbox"
              checked={filters.statuses.includes(status)}
              onChange={() => change({ statuses: toggled(filters.statuses, status) })}
            />
            {STATUS_WORDS[status]}
          </label>
        ))}
      </fieldset>
    </search>
  );
}

function SearchField({ text, change }: Pick<Bar, "change"> & { readonly text: string }) {
  const input = useRef<HTMLInputElement>(null);
  const isWanted = isSearchRequested.value;
  useLayoutEffect(() => {
    if (!isWanted) return;
    isSearchRequested.value = false;
    input.current?.focus();
    input.current?.select();
  }, [isWanted]);
  return (
    <input
      ref={input}
      type="search"
      class={styles["text"]}
      aria-label="Search sessions"
      placeholder="Search titles, prompts, directories"
      value={text}
      onInput={({ currentTarget }) => change({ text: currentTarget.value })}
    />
  );
}

function DirectoryField({ cwd, change }: { readonly cwd: string; readonly change: (cwd: string) => void }) {
  const known = directories.value;
  const choices = cwd === "" || known.includes(cwd) ? known : [cwd, ...known];
  return (
    <select
      class={styles["directory"]}
      aria-label="Directory"
      title={cwd}
      value={cwd}
      onChange={({ currentTarget }) => change(currentTarget.value)}
    >
      <option value="">All directories</option>
      {choices.map((path) => (
        <option key={path} value={path}>
          {displayLine(shortPath(path))}
        </option>
      ))}
    </select>
  );
}

function toggled(statuses: readonly SessionStatus[], status: SessionStatus): readonly SessionStatus[] {
  return statuses.includes(status) ? statuses.filter((each) => each !== status) : [...statuses, status];
}
