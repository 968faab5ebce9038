import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { classNames } from "../../parts/class-names.ts";
import styles from "./evidence.module.css";

/** Rows shown before "Show all". */
const SHOWN = 50;

interface Props<T> {
  readonly title: string;
  readonly all: readonly T[];
  readonly isWarning?: boolean;
  readonly children: (each: T) => ComponentChildren;
}

/** List with a title; nothing for an empty list. */
export function Rows<T>({ all, children: draw, isWarning = false, title }: Props<T>) {
  const [isWhole, setWhole] = useState(false);
  if (all.length === 0) return null;
  const shown = isWhole ? all : all.slice(0, SHOWN);
  return (
    <>
      <p class={classNames(styles, "title", isWarning ? "warning" : undefined)} aria-hidden="true">
        {title}
      </p>
      <ul class={styles["rows"]} aria-label={title}>
        {shown.map((each, at) => (
          <li key={at}>{draw(each)}</li>
        ))}
      </ul>
      {shown.length < all.length && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show all {all.length.toLocaleString("en-US")}
        </button>
      )}
    </>
  );
}
