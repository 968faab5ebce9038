import { useEffect, useRef, useState } from "preact/hooks";
import { callTitle } from "./call/title.ts";
import { harmlessLine } from "../parts/harmless.ts";
import type { Item } from "./fold/item.ts";

/** What has just happened, for those who do not see it: in short, and nothing of what is only loaded. */
export function Announcer({ items }: { readonly items: readonly Item[] }) {
  const said = useRef<number>();
  const [words, setWords] = useState("");
  const last = items.at(-1);
  useEffect(() => {
    if (!last) return;
    const isNew = said.current !== undefined && last.eventId > said.current && Date.now() - last.at < 30_000;
    said.current = Math.max(said.current ?? 0, last.eventId);
    if (isNew) setWords(wordsOf(last));
  }, [last]);
  return (
    <p class="unseen" role="status">
      {words}
    </p>
  );
}

function wordsOf(item: Item): string {
  switch (item.kind) {
    case "text":
      return harmlessLine(item.text, 300);
    case "call": {
      const { subject, verb } = callTitle(item.name, item.input, "");
      return harmlessLine(`${verb} ${subject}`, 120);
    }
    case "request":
      return `${item.ask.toolName} waits for an answer`;
    case "turn":
      return item.ended.isError ? `The turn ended: ${item.ended.outcome}` : "The turn is done";
    case "line":
      return harmlessLine(item.text, 200);
    case "prompt":
      return "A prompt was sent";
    case "thinking":
      return "";
  }
}
