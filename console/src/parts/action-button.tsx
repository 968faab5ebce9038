import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Problem } from "./problem.tsx";

interface Action {
  /** A thrown error is shown beside the button. */
  readonly act: () => Promise<unknown>;
  readonly kind?: "primary" | "danger" | "quiet" | "link";
  readonly disabled?: boolean;
  /** Accessible name, if `children` is not clear without context. */
  readonly label?: string;
  readonly children: ComponentChildren;
}

/** Button for a slow action that can fail. Ignores clicks while `act` runs. */
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
      {/* `aria-disabled` while pending: with `disabled` the button would lose the focus. */}
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
