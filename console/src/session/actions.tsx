import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { SessionDetail } from "../../../src/console/wire.ts";
import { count } from "../parts/format.ts";
import { may } from "../state/me.ts";
import { go } from "../state/route.ts";
import { act, useAttempt } from "./act.ts";
import { Dialog } from "./dialog.tsx";
import { isAtWork, isOver } from "./status.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./session.module.css";

/** Buttons for the whole session, each always in its place, so that a second click cannot hit another button. */
export function Actions({ detail }: { readonly detail: SessionDetail }) {
  const [asked, setAsked] = useState<"cancel" | "delete">();
  const interrupt = useAttempt();
  if (!may("run")) return null;
  const close = () => setAsked(undefined);
  const stop = () => void interrupt.run(() => act(detail.id, "interrupt", {}));
  return (
    <div class={styles["actions"]}>
      <Action isOff={!isAtWork(detail) || interrupt.isBusy} act={stop}>
        {interrupt.isBusy ? "Interrupting…" : "Interrupt"}
      </Action>
      <Action isRare isOff={isOver(detail)} act={() => setAsked("cancel")}>
        Cancel session
      </Action>
      <Action isRare isOff={isAtWork(detail)} act={() => setAsked("delete")}>
        Delete
      </Action>
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

interface ActionProps {
  readonly isOff: boolean;
  readonly isRare?: boolean;
  readonly act: () => void;
  readonly children: ComponentChildren;
}

/** Sets `aria-disabled`, because with `disabled` the button would lose the focus. */
function Action({ act: press, children, isOff, isRare = false }: ActionProps) {
  return (
    <button
      type="button"
      class={classNames(styles, "small", isRare ? "rare" : undefined)}
      aria-disabled={isOff}
      onClick={() => isOff || press()}
    >
      {children}
    </button>
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
      <p>{cancelText(detail)} The log stays readable here.</p>
      <label>
        Reason (optional)
        <input value={reason} maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

function cancelText(detail: SessionDetail): string {
  const { queued } = detail;
  const does = [
    ...(isAtWork(detail) ? ["stops the running turn"] : []),
    ...(queued > 0 ? [`drops ${count(queued, "queued prompt")}`] : []),
  ];
  return does.length === 0
    ? "The session accepts no more prompts."
    : `The session ${does.join(", ")} and accepts no more prompts.`;
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
