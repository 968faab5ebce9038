import type { ComponentChildren } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { classNames } from "../parts/class-names.ts";
import styles from "./timeline.module.css";

interface Props {
  readonly summary: ComponentChildren;
  /** Rendered only while open. */
  readonly children: () => ComponentChildren;
  readonly class?: string;
  readonly isOpenAtFirst?: boolean;
  /** Opens the disclosure for a target inside; the user may close the disclosure again. */
  readonly isWanted?: boolean;
}

export function Disclosure({ children, class: name = "", isOpenAtFirst = false, isWanted = false, summary }: Props) {
  const [isOpen, setOpen] = useState(isOpenAtFirst || isWanted);
  // Layout effect, so that `children` are rendered before the target is looked up.
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
