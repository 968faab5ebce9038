import { useMemo } from "preact/hooks";
import { mayScroll, Plain } from "./plain.tsx";
import { changedLines, type Run } from "./words/changed-lines.ts";
import type { Change as Changed } from "./words/subject.ts";

/** What would change in a file: every line of it, for whoever allows it answers for all of them. */
export function Change({ after, before }: Changed) {
  // Kept, since there may be thousands, and all of them come by again whenever anything in the list changes.
  const lines = useMemo(() => changedLines(before, after).map(shown), [before, after]);
  return (
    <pre
      class="rq-code rq-change"
      dir="ltr"
      tabIndex={mayScroll(before + after) ? 0 : undefined}
      role="group"
      aria-label="Change"
    >
      {lines}
    </pre>
  );
}

const HEARD = { same: "", added: "Added: ", removed: "Removed: " } as const;

/** As few elements as there can be. */
function shown({ kind, lines }: Run) {
  return lines.map((line, place) => (
    <span key={place} class={`rq-line rq-line-${kind}`}>
      {place === 0 && kind !== "same" && <span class="unseen">{HEARD[kind]}</span>}
      <Plain text={line} />
    </span>
  ));
}
