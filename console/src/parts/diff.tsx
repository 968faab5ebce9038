import { useMemo, useState } from "preact/hooks";
import { countChanges, linesToShow, type DiffLine, type Hunk } from "./diff-lines.ts";
import { displayText } from "./text.ts";
import { classNames } from "./class-names.ts";
import styles from "./diff.module.css";

interface Props {
  readonly hunks: readonly Hunk[];
  readonly path: string;
  /** True if the hunks have line numbers of the file; see `linesToShow`. */
  readonly numbered?: boolean;
}

/** Number of lines shown before "Show all". */
const SHOWN = 200;

/** Change of a file, line by line. */
export function Change({ hunks, numbered = false, path }: Props) {
  const [isAsked, setAsked] = useState(false);
  const lines = useMemo(() => linesToShow(hunks, numbered), [hunks, numbered]);
  const { added, removed } = countChanges(lines);
  const shown = isAsked ? lines : lines.slice(0, SHOWN);
  return (
    <figure class={styles["diff"]}>
      <figcaption>
        <code>{displayText(path)}</code>{" "}
        <span aria-hidden="true">
          <span class={styles["plus"]}>+{added}</span> <span class={styles["minus"]}>−{removed}</span>
        </span>
        <span class="visually-hidden">
          {added} lines added, {removed} removed
        </span>
      </figcaption>
      <div class={styles["box"]} tabIndex={0} role="region" aria-label={`Change of ${displayText(path)}`}>
        <div class={styles["lines"]}>
          {shown.map((line, at) => (
            <Line key={at} line={line} numbered={numbered} />
          ))}
        </div>
      </div>
      {shown.length < lines.length && (
        <button type="button" onClick={() => setAsked(true)}>
          Show all {lines.length} lines
        </button>
      )}
    </figure>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−", gap: "⋯" } as const;
const WORDS = { same: "", added: "added: ", removed: "removed: ", gap: "" } as const;

function Line({ line, numbered }: { readonly line: DiffLine; readonly numbered: boolean }) {
  return (
    <div class={classNames(styles, "line", line.kind)}>
      {numbered && (
        <span class="number" aria-hidden="true">
          {line.newNumber ?? line.oldNumber ?? ""}
        </span>
      )}
      <span class={styles["sign"]} aria-hidden="true">
        {SIGNS[line.kind]}
      </span>
      <span class="visually-hidden">{WORDS[line.kind]}</span>
      <code>{displayText(line.text)}</code>
    </div>
  );
}
