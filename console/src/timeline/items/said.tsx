import { Markdown } from "../../parts/markdown.tsx";
import { plain } from "../../parts/plain.ts";
import { glimpse } from "../../parts/glimpse.ts";
import { FoldOut } from "../fold-out.tsx";
import type { TextItem, ThinkingItem } from "../fold/item.ts";

/** What Claude Code says. */
export function Said({ item: { error, text } }: { readonly item: TextItem }) {
  return (
    <>
      {error !== undefined && <p class="problem">Claude Code reports an error: {glimpse(error, 80)}</p>}
      <Markdown text={text} />
    </>
  );
}

/** What it thinks before it does. */
export function Thought({ item: { text } }: { readonly item: ThinkingItem }) {
  const summary = (
    <span class="words quiet">
      Thinking: <span class="glimpse">{glimpse(text, 120)}</span>
    </span>
  );
  return <FoldOut summary={summary}>{() => <p class="as-written">{plain(text)}</p>}</FoldOut>;
}
