import { useContext, useState } from "preact/hooks";
import { count, timeOfDay } from "../../parts/format.ts";
import { displayText } from "../../parts/text.ts";
import { Disclosure } from "../disclosure.tsx";
import { EventWindowContext } from "../event-window.ts";
import { Pictures } from "../pictures.tsx";
import type { PromptItem } from "../reducer/item.ts";
import { RewindButton } from "../rewind.tsx";
import { classNames } from "../../parts/class-names.ts";
import styles from "../timeline.module.css";
import markdown from "../../parts/markdown.module.css";

/** Characters of a long prompt shown at first. */
const SHOWN = 1_500;

export function Prompt({ item }: { readonly item: PromptItem }) {
  const { eventId, pictures, promptId, state, text } = item;
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > SHOWN && !isWhole;
  return (
    <div class={classNames(styles, "bubble", state)}>
      <p class={styles["label"]}>
        Prompt <PromptState item={item} /> <QueuedAt item={item} />
      </p>
      <p class={markdown["as-written"]}>
        {displayText(isLong ? text.slice(0, SHOWN) : text)}
        {isLong && "…"}
      </p>
      {isLong && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show all {count(text.length, "character")}
        </button>
      )}
      {pictures.length > 0 && (
        <Disclosure summary={<span class={styles["label"]}>With {count(pictures.length, "image")}</span>}>
          {() => <Pictures pictures={pictures} />}
        </Disclosure>
      )}
      {state === "begun" && <RewindButton promptId={promptId} eventId={eventId} />}
    </div>
  );
}

/** Time of sending, for a queued prompt: `Entry` shows the time at which Claude Code received the prompt. */
function QueuedAt({ item: { at, queuedAt } }: { readonly item: PromptItem }) {
  if (queuedAt === undefined || at - queuedAt < 1_000) return null;
  return <span class="soft">sent at {timeOfDay(queuedAt)}</span>;
}

function PromptState({ item: { promptId, state, why } }: { readonly item: PromptItem }) {
  const detail = useContext(EventWindowContext)?.detail.value;
  if (state === "begun") return null;
  if (state === "steered") return <span class={styles["badge"]}>joined the running turn</span>;
  if (state === "dropped") return <span class={styles["badge"]}>never ran: {why ?? "dropped"}</span>;
  const queued = detail?.queue.find((each) => each.promptId === promptId);
  if (!queued) return null;
  return queued.held ? (
    <span class={classNames(styles, "badge", "warn")}>held</span>
  ) : (
    <span class={styles["badge"]}>queued</span>
  );
}
