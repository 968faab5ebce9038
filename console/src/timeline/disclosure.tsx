import type { ComponentChildren } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { classNames } from "../parts/class-names.ts";
import styles from "./timeline.module.css";

interface Props {
  readonly summary: ComponentChildren;
  /** Made only when it is open. */
  readonly children: () => ComponentChildren;
  readonly class?: string;
  readonly isOpenAtFirst?: boolean;
  /** Something in it is wanted: it opens, and may be closed again. */
  readonly isWanted?: boolean;
}

/** Something closed that can be opened. */
export function Disclosure({ children, class: name = "", isOpenAtFirst = false, isWanted = false, summary }: Props) {
  const [isOpen, setOpen] = useState(isOpenAtFirst || isWanted);
  // Before anything is looked for in it.
  useLayoutEffect(() => {
    if (isWanted) setOpen(true);
  }, [isWanted]);
  return (
    <details
      class={classNames(styles, "disclosure", name)}
      open={isOpen}
      onToggle={(event) => setOpen(event.currentTarget.open)}
    >
      <summary>{summary}</summary>
      {isOpen && <div class={styles["inside"]}>{children()}</div>}
    </details>
  );
}
