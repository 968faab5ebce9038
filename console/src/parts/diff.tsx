<<<<<<< HEAD
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
=======
import { structuredPatch } from "diff";
import { Plain } from "../requests/plain.tsx";

interface Props {
  readonly before: string;
  readonly after: string;
  readonly path: string;
}

const MARKS: Readonly<Record<string, { readonly kind: string; readonly word: string }>> = {
  "+": { kind: "added", word: "added: " },
  "-": { kind: "removed", word: "removed: " },
};

/** What changes in a file, line by line. */
export function Diff({ after, before, path }: Props) {
  const { hunks } = structuredPatch(path, path, before, after, "", "", { context: 3 });
  return (
    <figure class="diff">
      <figcaption>
        <Plain text={path} />
      </figcaption>
      <pre tabIndex={0} role="region" aria-label={`Change of ${path}`}>
        {hunks.flatMap(({ lines }, hunk) =>
          lines.map((line, place) => <Line key={`${String(hunk)}.${String(place)}`} line={line} />),
        )}
      </pre>
>>>>>>> console
    </figure>
  );
}

<<<<<<< HEAD
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
=======
function Line({ line }: { readonly line: string }) {
  const { kind, word } = MARKS[line.slice(0, 1)] ?? { kind: "same", word: "" };
  return (
    <span class={`diff-line ${kind}`}>
      <span aria-hidden="true">{line.slice(0, 1)} </span>
      <span class="unseen">{word}</span>
      <Plain text={line.slice(1)} />
      {"\n"}
    </span>
>>>>>>> console
  );
}
