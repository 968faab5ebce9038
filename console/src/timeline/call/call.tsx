import type { ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { count, duration } from "../../parts/format.ts";
import { truncateLine } from "../../parts/text.ts";
import { EventWindowContext } from "../event-window.ts";
import { Disclosure } from "../disclosure.tsx";
import type { CallItem, CallState, Item } from "../reducer/item.ts";
import { ShowWhole } from "../show-whole.tsx";
import { TargetContext } from "../target.ts";
import { CallBody } from "./body.tsx";
import { callTitle } from "./title.ts";
import { classNames } from "../../parts/class-names.ts";
import styles from "../timeline.module.css";

interface Props {
  readonly item: CallItem;
  /** Renders steps of a subagent, which can be any `Item`. */
  readonly children: (items: readonly Item[]) => ComponentChildren;
}

/** Tool call with its output and the steps of its subagent. */
export function Call({ children: draw, item }: Props) {
  const cwd = useContext(EventWindowContext)?.detail.value?.cwd ?? "";
  const isWanted = useContext(TargetContext)?.within.has(item.key) === true;
  const { children, name, summary } = item;
  return (
    <>
      <Disclosure
        summary={<Head item={item} cwd={cwd} />}
        isOpenAtFirst={name === "TodoWrite" || name === "ExitPlanMode"}
      >
        {() => (
          <>
            <CallBody item={item} cwd={cwd} />
            <ShowWhole eventIds={item.cutIn} />
          </>
        )}
      </Disclosure>
      {summary !== undefined && <p class={classNames(styles, "soft", "summary")}>{truncateLine(summary, 300)}</p>}
      {children.length > 0 && (
        <Disclosure
          class="nested"
          summary={<span class={styles["words"]}>{childrenSummary(children)}</span>}
          isWanted={isWanted}
        >
          {() => <ol class={styles["items"]}>{draw(children)}</ol>}
        </Disclosure>
      )}
    </>
  );
}

function Head({ cwd, item }: { readonly item: CallItem; readonly cwd: string }) {
  const { at, endedAt, input, name, state } = item;
  const { isCode, subject, verb } = callTitle(name, input, cwd);
  return (
    <span class={styles["words"]}>
      <State state={state} />
      <b>{verb}</b>{" "}
      {subject !== "" &&
        (isCode ? (
          <code class={styles["truncated"]}>{subject}</code>
        ) : (
          <span class={styles["truncated"]}>{subject}</span>
        ))}
      {endedAt !== undefined && endedAt - at >= 1_000 && <span class="soft"> {duration(endedAt - at)}</span>}
    </span>
  );
}

const STATES: Readonly<Record<CallState, readonly [mark: string, words: string]>> = {
  running: ["●", "running"],
  asked: ["?", "waiting for approval"],
  background: ["◐", "running in the background"],
  done: ["✓", "done"],
  failed: ["✕", "failed"],
  denied: ["⊘", "denied"],
  stopped: ["■", "stopped"],
};

const IN_WORDS: ReadonlySet<CallState> = new Set(["background", "failed", "denied", "stopped"]);

/** Mark of the state; words are visible only for `IN_WORDS`. */
function State({ state }: { readonly state: CallState }) {
  const [mark, words] = STATES[state];
  return (
    <span class={classNames(styles, "state", state)}>
      <span class={styles["glyph"]} aria-hidden="true">
        {mark}
      </span>
      <span class={IN_WORDS.has(state) ? styles["badge"] : "visually-hidden"}>{words}</span>{" "}
    </span>
  );
}

function childrenSummary(children: readonly Item[]): string {
  const calls = children.filter(({ kind }) => kind === "call").length;
  return `Subagent: ${count(children.length, "step")}, ${count(calls, "tool call")}`;
}
