import { useContext, useMemo } from "preact/hooks";
import { moment, timeOfDay } from "../parts/format.ts";
import { useEventHref } from "./event-window.ts";
import { Call } from "./call/call.tsx";
import type { Item, LineItem, TextItem, ThinkingItem } from "./reducer/item.ts";
import { Receipt } from "./evidence/receipt.tsx";
import { Verification } from "./evidence/verification.tsx";
import { ShowWhole } from "./show-whole.tsx";
import { TargetContext } from "./target.ts";
import { Prompt } from "./items/prompt.tsx";
import { Request } from "./items/request.tsx";
import { TurnEnd } from "./items/turn-end.tsx";
import { truncateLine, displayText } from "../parts/text.ts";
import { Disclosure } from "./disclosure.tsx";
import { Json, Output } from "./output.tsx";
import { Pictures } from "./pictures.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { classNames } from "../parts/class-names.ts";
import styles from "./timeline.module.css";
import markdown from "../parts/markdown.module.css";

/** Item of the timeline. Memoized by `item`, because the reducer creates a new object for each change. */
export function Entry({ item }: { readonly item: Item }) {
  const isTarget = useContext(TargetContext)?.item.key === item.key;
  return useMemo(
    () => (
      <li
        class={classNames(styles, "entry", item.kind, isTarget ? "target" : undefined)}
        data-event={item.eventId}
        tabIndex={-1}
      >
        <div class={styles["what"]}>
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
      return <TextMessage item={item} />;
    case "thinking":
      return <Thinking item={item} />;
    case "call":
      return <Call item={item}>{(children) => children.map((child) => <Entry key={child.key} item={child} />)}</Call>;
    case "request":
      return <Request item={item} />;
    case "verification":
      return <Verification item={item} />;
    case "receipt":
      return <Receipt item={item} />;
    case "turn":
      return <TurnEnd item={item} />;
    case "line":
      return <Line item={item} />;
  }
}

/** Start time, as a link to this item. */
function When({ item: { at, eventId } }: { readonly item: Item }) {
  const href = useEventHref();
  return (
    <a class={styles["when"]} href={href(eventId)} title={`${moment(at)}, event ${String(eventId)}`}>
      <time dateTime={new Date(at).toISOString()}>{timeOfDay(at)}</time>
    </a>
  );
}

/** Maximum characters of a text shown without `Disclosure`. */
const SHORT = 280;

const MARKS = { quiet: "·", warn: "!", bad: "✕" } as const;

/** Event beside the conversation, such as a notice. */
function Line({ item }: { readonly item: LineItem }) {
  const { more, pictures = [], text, tone } = item;
  const isLong = text.length > SHORT || text.trim().includes("\n");
  const words = (
    <span class={classNames(styles, "words", tone)}>
      <span class={styles["glyph"]} aria-hidden="true">
        {MARKS[tone]}
      </span>{" "}
      {truncateLine(text, SHORT)}
    </span>
  );
  if (more === undefined && !isLong) return <p class={styles["plain"]}>{words}</p>;
  return (
    <Disclosure summary={words}>
      {() => (
        <>
          {isLong && <p class={markdown["as-written"]}>{displayText(text)}</p>}
          {pictures.length > 0 && <Pictures pictures={pictures} />}
          {typeof more === "string" && <Output label="Text" text={more} />}
          {more !== undefined && typeof more !== "string" && <Json value={more} />}
        </>
      )}
    </Disclosure>
  );
}

function TextMessage({ item: { isError, text } }: { readonly item: TextItem }) {
  if (isError) return <p class={classNames(markdown, "as-written", "problem")}>{displayText(text)}</p>;
  return <Markdown text={text} />;
}

function Thinking({ item: { text } }: { readonly item: ThinkingItem }) {
  const summary = (
    <span class={classNames(styles, "words", "quiet")}>
      Thinking: <span class={styles["truncated"]}>{truncateLine(text, 120)}</span>
    </span>
  );
  return <Disclosure summary={summary}>{() => <p class={markdown["as-written"]}>{displayText(text)}</p>}</Disclosure>;
}
