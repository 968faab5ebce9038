import type { ActionBodies, SessionDetail } from "../../../src/console/wire.ts";
import { count } from "../parts/format.ts";
import { may } from "../state/me.ts";
import { act, useAttempt } from "./act.ts";
import { isOver } from "./status.ts";

/** Prompts that nobody has let run yet: after an interrupt, a stop or a loss nothing that waited runs unasked. */
export function HeldPrompts({ detail: session }: { readonly detail: SessionDetail }) {
  const attempt = useAttempt();
  const { held, id, queued } = session;
  if (isOver(session) || queued === 0) return null;
  if (held === 0)
    return <p class="strip soft">{count(queued, "prompt is queued", "prompts are queued")} until this turn ends.</p>;
  const run = (action: keyof Pick<ActionBodies, "release-queue" | "drop-queue">) =>
    void attempt.run(() => act(id, action, {}));
  return (
    <div class="strip warn">
      <span>{count(held, "prompt is held", "prompts are held")}: the previous turn did not succeed.</span>
      {may("run") && (
        <span class="buttons">
          <button type="button" class="small" disabled={attempt.isBusy} onClick={() => run("release-queue")}>
            Run {held === 1 ? "it" : "them"}
          </button>
          <button type="button" class="small" disabled={attempt.isBusy} onClick={() => run("drop-queue")}>
            Drop
          </button>
        </span>
      )}
      {attempt.problem !== undefined && (
        <p role="alert" class="problem">
          {attempt.problem}
        </p>
      )}
    </div>
  );
}
