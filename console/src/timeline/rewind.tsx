import { useContext, useState } from "preact/hooks";
import type { RewindResult } from "../../../src/console/wire.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { count } from "../parts/format.ts";
import { displayText } from "../parts/text.ts";
import { may } from "../state/me.ts";
import { type EventWindow, EventWindowContext } from "./event-window.ts";
import { hasEditsAfter } from "./reducer/item.ts";
import { act, useAttempt } from "../session/act.ts";
import { Dialog } from "../session/dialog.tsx";
import { isAtWork, isOver } from "../session/status.ts";
import styles from "./timeline.module.css";

interface Props {
  readonly promptId: string;
  /** Event of the prompt. */
  readonly eventId: number;
}

/** Restores files to their state before a prompt, after a preview of the changes. */
export function RewindButton({ eventId, promptId }: Props) {
  const [preview, setPreview] = useState<RewindResult>();
  const eventWindow = useContext(EventWindowContext);
  const detail = eventWindow?.detail.value;
  if (!eventWindow || !detail?.canRewind || !may("run") || isOver(detail) || isAtWork(detail)) return null;
  if (!mayHaveEdits(eventWindow, eventId)) return null;
  const look = async () => setPreview(await rewind(detail.id, promptId, true));
  return (
    <div class={styles["rewind"]}>
      <ActionButton kind="quiet" act={look}>
        Rewind files to before this
      </ActionButton>
      {preview && (
        <RewindDialog
          preview={preview}
          act={() => rewind(detail.id, promptId, false)}
          onClose={() => setPreview(undefined)}
        />
      )}
    </div>
  );
}

/** True also if the window ends before the log does, because later events may have edits. */
function mayHaveEdits({ extent, items }: EventWindow, after: number): boolean {
  const isWhole = extent.value?.last === extent.value?.newest;
  return !isWhole || hasEditsAfter(items.value, after);
}

async function rewind(sessionId: string, promptId: string, dryRun: boolean): Promise<RewindResult> {
  return act<"rewind", RewindResult>(sessionId, "rewind", { promptId, dryRun });
}

interface DialogProps {
  readonly preview: RewindResult;
  readonly act: () => Promise<RewindResult>;
  readonly onClose: () => void;
}

function RewindDialog({ act: goBack, onClose, preview }: DialogProps) {
  const attempt = useAttempt();
  const put = async () => {
    const done = await goBack();
    if (!done.canRewind) throw new Error(done.error ?? "Claude Code cannot restore the files.");
  };
  const confirm = async () => {
    if (await attempt.run(put)) onClose();
  };
  return (
    <Dialog
      title="Rewind files to before this prompt?"
      confirm="Rewind files"
      isDangerous
      isReady={preview.canRewind && (preview.filesChanged?.length ?? 1) > 0}
      attempt={attempt}
      onConfirm={() => void confirm()}
      onClose={onClose}
    >
      <Preview preview={preview} />
    </Dialog>
  );
}

function Preview({
  preview: { canRewind, deletions = 0, error, filesChanged = [], insertions = 0 },
}: {
  readonly preview: RewindResult;
}) {
  if (!canRewind) return <p class="problem">{displayText(error ?? "There is no file checkpoint at this prompt.")}</p>;
  if (filesChanged.length === 0) return <p>No file has changed since; there is nothing to restore.</p>;
  return (
    <>
      <p>
        {count(filesChanged.length, "file")} would be restored ({count(insertions, "line")} added, {deletions} removed).
        The conversation is not changed.
      </p>
      <ul class={styles["files"]} tabIndex={0} aria-label="Files">
        {filesChanged.map((file) => (
          <li key={file}>
            <code>{displayText(file)}</code>
          </li>
        ))}
      </ul>
    </>
  );
}
