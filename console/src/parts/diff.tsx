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
    </figure>
  );
}

function Line({ line }: { readonly line: string }) {
  const { kind, word } = MARKS[line.slice(0, 1)] ?? { kind: "same", word: "" };
  return (
    <span class={`diff-line ${kind}`}>
      <span aria-hidden="true">{line.slice(0, 1)} </span>
      <span class="unseen">{word}</span>
      <Plain text={line.slice(1)} />
      {"\n"}
    </span>
  );
}
