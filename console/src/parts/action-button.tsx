import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Problem } from "./problem.tsx";

interface Action {
  /** What it throws is shown beside the button. */
  readonly act: () => Promise<unknown>;
  readonly kind?: "primary" | "danger" | "quiet" | "link";
  readonly disabled?: boolean;
  /** For whom the words on it are not enough. */
  readonly label?: string;
  readonly children: ComponentChildren;
}

/** A button for what takes a moment and can fail. Pressed again meanwhile, it does nothing. */
export function ActionButton({ act, kind, disabled = false, label, children }: Action) {
  const [isPending, setPending] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const press = async () => {
    if (isPending) return;
    setPending(true);
    setProblem(undefined);
    try {
      await act();
    } catch (error) {
      setProblem(error);
    } finally {
      setPending(false);
    }
  };
  return (
    <>
      {/* Not `disabled` while it is pending: the keyboard's focus would be lost with it. */}
      <button
        type="button"
        class={kind}
        disabled={disabled}
        aria-disabled={isPending}
        aria-busy={isPending}
        aria-label={label}
        onClick={() => void press()}
      >
        {children}
      </button>
      <Problem of={problem} />
    </>
  );
}
