import { structuredPatch } from "diff";
import { Plain } from "./plain.tsx";
import type { Change as Changed } from "./words/subject.ts";

const CONTEXT = 3;

/** What would change in a file: every line of it, for whoever allows it answers for all of them. */
export function Change({ after, before, path }: Changed & { readonly path: string }) {
  const { hunks } = structuredPatch(path, path, before, after, "", "", { context: CONTEXT });
  const lines = hunks.flatMap((hunk) => hunk.lines);
  return (
    <pre class="rq-code rq-change" dir="ltr" tabIndex={0} role="group" aria-label="Change">
      {lines.map((line, place) => (
        <Line key={place} line={line} />
      ))}
    </pre>
  );
}

const KINDS: Readonly<Record<string, { readonly name: string; readonly sign: string; readonly heard: string }>> = {
  "+": { name: "added", sign: "+", heard: "Added: " },
  "-": { name: "removed", sign: "−", heard: "Removed: " },
};

function Line({ line }: { readonly line: string }) {
  const { heard, name, sign } = KINDS[line.slice(0, 1)] ?? { name: "same", sign: " ", heard: "" };
  return (
    <span class={`rq-line rq-line-${name}`}>
      <span class="rq-line-sign" aria-hidden="true">
        {sign}
      </span>
      <span>
        <span class="unseen">{heard}</span>
        <Plain text={line.slice(1)} />
      </span>
    </span>
  );
}
