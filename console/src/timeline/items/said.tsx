import { Markdown } from "../../parts/markdown.tsx";
import { harmless, harmlessLine } from "../../parts/harmless.ts";
import { FoldOut } from "../fold-out.tsx";
import type { TextItem, ThinkingItem } from "../fold/item.ts";

/** What Claude Code says. */
export function Said({ item: { error, text } }: { readonly item: TextItem }) {
  return (
    <>
      {error !== undefined && <p class="problem">Claude Code reports an error: {harmlessLine(error, 80)}</p>}
      <Markdown text={text} />
    </>
  );
}

/** What it thinks before it does. */
export function Thought({ item: { text } }: { readonly item: ThinkingItem }) {
  const summary = (
    <span class="words quiet">
      Thinking: <span class="glimpse">{harmlessLine(text, 120)}</span>
    </span>
  );
  return <FoldOut summary={summary}>{() => <p class="as-written">{harmless(text)}</p>}</FoldOut>;
}
