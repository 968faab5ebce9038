import { plain } from "../../parts/plain.ts";
import { glimpse } from "../../parts/glimpse.ts";
import { FoldOut } from "../fold-out.tsx";
import type { LineItem } from "../fold/item.ts";
import { Json } from "../json.tsx";

/** Longer texts are opened to be read, characters. */
const SHORT = 280;

const MARKS = { quiet: "·", warn: "!", bad: "✕" } as const;

/** What happens beside the talk. */
export function Line({ item }: { readonly item: LineItem }) {
  const { more, text, tone } = item;
  const isLong = text.length > SHORT || text.trim().includes("\n");
  const words = (
    <span class={`words ${tone}`}>
      <span class="glyph" aria-hidden="true">
        {MARKS[tone]}
      </span>{" "}
      {glimpse(text, SHORT)}
    </span>
  );
  if (more === undefined && !isLong) return <p class="plain">{words}</p>;
  return (
    <FoldOut summary={words}>
      {() => (
        <>
          {isLong && <p class="as-written">{plain(text)}</p>}
          {more !== undefined && <Json value={more} />}
        </>
      )}
    </FoldOut>
  );
}
