import { callTitle } from "./call/title.ts";
import { glimpse } from "../parts/glimpse.ts";
import type { Feed } from "./feed.ts";
import type { Item } from "./fold/item.ts";

/** What has just happened, for those who do not see it: in short, and nothing of what is only loaded. */
export function Announcer({ feed }: { readonly feed: Feed }) {
  const news = feed.news.value;
  return (
    <p class="unseen" role="status">
      {news && wordsOf(news)}
    </p>
  );
}

function wordsOf(item: Item): string {
  switch (item.kind) {
    case "text":
      return glimpse(item.text, 300);
    case "call": {
      const { subject, verb } = callTitle(item.name, item.input, "");
      return glimpse(`${verb} ${subject}`, 120);
    }
    case "request":
      return `${item.request.toolName} is waiting for approval`;
    case "turn":
      return item.ended.isError ? `The turn ended: ${item.ended.outcome}` : "The turn is done";
    case "line":
      return glimpse(item.text, 200);
    case "prompt":
      return "A prompt was sent";
    case "thinking":
      return "";
  }
}
