import { useContext, useEffect, useState } from "preact/hooks";
import type { Rewound } from "../../../src/console/wire.ts";
import { counted } from "../parts/amounts.ts";
import { harmless } from "../parts/harmless.ts";
import { may } from "../state/me.ts";
import { FeedContext } from "../timeline/feed.ts";
import { act, useAttempt } from "./act.ts";
import { Dialog } from "./dialog.tsx";
import { isAtWork, isOver } from "./status.ts";

interface Props {
  readonly promptId: string;
}

/** Puts files back to what they were before a prompt. */
export function RewindButton({ promptId }: Props) {
  const [isOpen, setOpen] = useState(false);
  const detail = useContext(FeedContext)?.detail.value;
  if (!detail?.canRewind || !may("run") || isOver(detail) || isAtWork(detail)) return null;
  return (
    <>
      <button type="button" class="link rewind" onClick={() => setOpen(true)}>
        Rewind files to before this
      </button>
      {isOpen && <RewindDialog sessionId={detail.id} promptId={promptId} onClose={() => setOpen(false)} />}
    </>
  );
}

function RewindDialog({
  onClose,
  promptId,
  sessionId,
}: Props & { readonly sessionId: string; readonly onClose: () => void }) {
  const [preview, setPreview] = useState<Rewound>();
  const look = useAttempt();
  const attempt = useAttempt();
  useEffect(() => {
    void look.run(async () =>
      setPreview(await act<"rewind", Rewound>(sessionId, "rewind", { promptId, dryRun: true })),
    );
  }, []);
  const rewind = async () => {
    const done = await act<"rewind", Rewound>(sessionId, "rewind", { promptId, dryRun: false });
    if (!done.canRewind) throw new Error(done.error ?? "Claude Code cannot put the files back.");
  };
  const confirm = () => void attempt.run(rewind).then((ok) => ok && onClose());
  const isReady = preview?.canRewind === true && (preview.filesChanged?.length ?? 1) > 0;
  return (
    <Dialog
      title="Rewind files to before this prompt?"
      confirm="Rewind files"
      isDangerous
      isReady={isReady}
      attempt={attempt}
      onConfirm={confirm}
      onClose={onClose}
    >
      {look.isBusy && <p role="status">Looking at what would change…</p>}
      {look.problem !== undefined && (
        <p role="alert" class="problem">
          {look.problem}
        </p>
      )}
      {preview && <Preview preview={preview} />}
    </Dialog>
  );
}

function Preview({
  preview: { canRewind, deletions = 0, error, filesChanged = [], insertions = 0 },
}: {
  readonly preview: Rewound;
}) {
  if (!canRewind)
    return <p class="problem">{harmless(error ?? "There is no checkpoint of the files at this prompt.")}</p>;
  if (filesChanged.length === 0) return <p>No file has changed since: there is nothing to put back.</p>;
  return (
    <>
      <p>
        {counted(filesChanged.length, "file")} would be put back ({counted(insertions, "line")} added, {deletions}{" "}
        removed). What was said stays.
      </p>
      <ul class="files" tabIndex={0} aria-label="Files">
        {filesChanged.map((file) => (
          <li key={file}>
            <code>{harmless(file)}</code>
          </li>
        ))}
      </ul>
    </>
  );
}
