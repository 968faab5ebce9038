import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

interface Props {
  readonly summary: ComponentChildren;
  /** Made only when it is open. */
  readonly children: () => ComponentChildren;
  readonly class?: string;
  readonly isOpenAtFirst?: boolean;
}

/** Something closed that can be opened. */
export function FoldOut({ children, class: name = "", isOpenAtFirst = false, summary }: Props) {
  const [isOpen, setOpen] = useState(isOpenAtFirst);
  return (
    <details class={`fold ${name}`} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && <div class="inside">{children()}</div>}
    </details>
  );
}
