import "../style/diff.css";
import { useMemo, useState } from "preact/hooks";
import { countOf, linesToShow, type DiffLine, type Hunk } from "./diff-lines.ts";
import { plain } from "./plain.ts";

/** Lines that are shown at first. */
const SHOWN = 200;

interface Props {
  readonly hunks: readonly Hunk[];
  /** Its line numbers are those of the file. */
  readonly numbered: boolean;
  /** What it is of, for those who do not see it. */
  readonly label: string;
}

/** A change of a file, line by line. */
export function Diff({ hunks, label, numbered }: Props) {
  const [isWhole, setWhole] = useState(false);
  const lines = useMemo(() => linesToShow(hunks, numbered), [hunks, numbered]);
  const { added, removed } = countOf(lines);
  const shown = isWhole ? lines : lines.slice(0, SHOWN);
  return (
    <figure class="diff">
      <figcaption>
        <span class="plus">+{added}</span> <span class="minus">−{removed}</span>
        <span class="unseen">
          {added} lines added, {removed} removed
        </span>
      </figcaption>
      <div class="box" tabIndex={0} role="group" aria-label={label}>
        <div class="lines">
          {shown.map((line, at) => (
            <Line key={at} line={line} numbered={numbered} />
          ))}
        </div>
      </div>
      {shown.length < lines.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {lines.length} lines
        </button>
      )}
    </figure>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−", gap: "⋯" } as const;

function Line({ line, numbered }: { readonly line: DiffLine; readonly numbered: boolean }) {
  return (
    <div class={`line ${line.kind}`}>
      {numbered && (
        <span class="number" aria-hidden="true">
          {line.newNumber ?? line.oldNumber ?? ""}
        </span>
      )}
      <span class="sign">{SIGNS[line.kind]}</span>
      <code>{plain(line.text)}</code>
    </div>
  );
}
