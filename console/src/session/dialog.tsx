import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Attempt } from "./act.ts";
import styles from "./session.module.css";

interface Props {
  readonly title: string;
  readonly children: ComponentChildren;
  /** Label of the button, one or two words. */
  readonly confirm: string;
  readonly isDangerous?: boolean;
  readonly isReady?: boolean;
  readonly attempt: Attempt;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Confirmation dialog, open while mounted. Escape and Back close the dialog. */
export function Dialog({
  attempt,
  children,
  confirm,
  isDangerous = false,
  isReady = true,
  onClose,
  onConfirm,
  title,
}: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus({ preventScroll: true });
    };
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    onConfirm();
  };
  return (
    <dialog class={styles["ask"]} ref={dialog} aria-labelledby={id} onClose={onClose}>
      <form method="dialog" onSubmit={submit}>
        <h2 id={id}>{title}</h2>
        {children}
        {attempt.problem !== undefined && (
          <p role="alert" class="problem">
            {attempt.problem}
          </p>
        )}
        <p class={styles["buttons"]}>
          <button type="button" onClick={() => dialog.current?.close()}>
            Back
          </button>
          <button type="submit" class={isDangerous ? "danger" : "primary"} disabled={attempt.isBusy || !isReady}>
            {attempt.isBusy ? "One moment…" : confirm}
          </button>
        </p>
      </form>
    </dialog>
  );
}
