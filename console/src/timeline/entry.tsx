import { useContext, useMemo } from "preact/hooks";
import { moment } from "../parts/format.ts";
import { timeOfDay } from "./time-of-day.ts";
import { FeedContext } from "./feed.ts";
import { Call } from "./call/call.tsx";
import type { Item } from "./fold/item.ts";
import { hrefOf } from "../state/route.ts";
import { ShowWhole } from "./show-whole.tsx";
import { TargetContext } from "./target.ts";
import { Line } from "./items/line.tsx";
import { Prompt } from "./items/prompt.tsx";
import { Request } from "./items/request.tsx";
import { Said, Thought } from "./items/said.tsx";
import { TurnEnd } from "./items/turn-end.tsx";

/** An item of the timeline. It is drawn anew only when it is another object than before. */
export function Entry({ item }: { readonly item: Item }) {
  const isTarget = useContext(TargetContext)?.item.key === item.key;
  return useMemo(
    () => (
      <li class={`entry ${item.kind}${isTarget ? " target" : ""}`} data-event={item.eventId} tabIndex={-1}>
        <div class="what">
          <Body item={item} />
          {item.kind !== "call" && <ShowWhole eventIds={item.cutIn} />}
        </div>
        <When item={item} />
      </li>
    ),
    [item, isTarget],
  );
}

function Body({ item }: { readonly item: Item }) {
  switch (item.kind) {
    case "prompt":
      return <Prompt item={item} />;
    case "text":
      return <Said item={item} />;
    case "thinking":
      return <Thought item={item} />;
    case "call":
      return <Call item={item}>{(children) => children.map((child) => <Entry key={child.key} item={child} />)}</Call>;
    case "request":
      return <Request item={item} />;
    case "turn":
      return <TurnEnd item={item} />;
    case "line":
      return <Line item={item} />;
  }
}

/** When it began; leads to this very place. */
function When({ item: { at, eventId } }: { readonly item: Item }) {
  const feed = useContext(FeedContext);
  const here = hrefOf({ view: "session", id: feed?.sessionId ?? "" });
  return (
    <a class="when" href={`${here}?event=${String(eventId)}`} title={`${moment(at)}, event ${String(eventId)}`}>
      <time dateTime={new Date(at).toISOString()}>{timeOfDay(at)}</time>
    </a>
  );
}
