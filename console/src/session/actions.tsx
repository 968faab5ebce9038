import { useState } from "preact/hooks";
import type { SessionDetail } from "../../../src/console/wire.ts";
import { may } from "../state/me.ts";
import { go } from "../state/route.ts";
import { act, useAttempt } from "./act.ts";
import { Dialog } from "./dialog.tsx";
import { isAtWork, isOver } from "./status.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./session.module.css";

/** What can be done with the session as a whole. */
export function Actions({ detail }: { readonly detail: SessionDetail }) {
  const [asked, setAsked] = useState<"cancel" | "delete">();
  const interrupt = useAttempt();
  if (!may("run")) return null;
  const close = () => setAsked(undefined);
  return (
    <div class={styles["actions"]}>
      {isAtWork(detail) && (
        <button
          type="button"
          class="small"
          disabled={interrupt.isBusy}
          onClick={() => void interrupt.run(() => act(detail.id, "interrupt", {}))}
        >
          {interrupt.isBusy ? "Interrupting…" : "Interrupt"}
        </button>
      )}
      {!isOver(detail) && (
        <button type="button" class={classNames(styles, "small", "rare")} onClick={() => setAsked("cancel")}>
          Cancel session
        </button>
      )}
      {!isAtWork(detail) && (
        <button type="button" class={classNames(styles, "small", "rare")} onClick={() => setAsked("delete")}>
          Delete
        </button>
      )}
      {interrupt.problem !== undefined && (
        <p role="alert" class="problem">
          {interrupt.problem}
        </p>
      )}
      {asked === "cancel" && <CancelDialog detail={detail} onClose={close} />}
      {asked === "delete" && <DeleteDialog detail={detail} onClose={close} />}
    </div>
  );
}

interface Props {
  readonly detail: SessionDetail;
  readonly onClose: () => void;
}

function CancelDialog({ detail, onClose }: Props) {
  const [reason, setReason] = useState("");
  const attempt = useAttempt();
  const cancel = () => {
    const body = reason.trim() === "" ? {} : { reason: reason.trim() };
    void attempt.run(() => act(detail.id, "cancel", body)).then((ok) => ok && onClose());
  };
  return (
    <Dialog
      title="Cancel this session?"
      confirm="Cancel session"
      isDangerous
      attempt={attempt}
      onConfirm={cancel}
      onClose={onClose}
    >
      <p>Stops the running turn, drops queued prompts and accepts no more prompts. The log stays readable here.</p>
      <label>
        Reason (optional)
        <input value={reason} maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

function DeleteDialog({ detail, onClose }: Props) {
  const attempt = useAttempt();
  const remove = () => {
    void attempt.run(() => act(detail.id, "delete", {})).then((ok) => ok && go({ view: "sessions" }));
  };
  return (
    <Dialog
      title="Delete this session?"
      confirm="Delete"
      isDangerous
      attempt={attempt}
      onConfirm={remove}
      onClose={onClose}
    >
      <p>Permanently deletes its log. Files that Claude Code has changed stay as they are.</p>
    </Dialog>
  );
}
