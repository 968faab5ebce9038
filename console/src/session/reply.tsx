import { useState } from "preact/hooks";
import type { ReplyBody, SessionDetail } from "../../../src/console/wire.ts";
import { newRetryKey, post } from "../net/api.ts";
import { may } from "../state/me.ts";
import { useAttempt } from "./act.ts";
import { isAtWork, isOver } from "./status.ts";
import { perUser } from "../state/per-user.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./session.module.css";

type WhenBusy = "queue" | "steer";

export function Reply({ detail }: { readonly detail: SessionDetail }) {
  if (isOver(detail)) return <p class={styles["none"]}>This session is {detail.status} and accepts no more prompts.</p>;
  if (!may("run")) return <p class={styles["none"]}>You can view this session but not send prompts.</p>;
  return <ReplyForm detail={detail} />;
}

function ReplyForm({ detail }: { readonly detail: SessionDetail }) {
  const [{ key, prompt }, setDraft] = useState(() => draftFor(detail.id));
  const [whenBusy, setWhenBusy] = useState<WhenBusy>("queue");
  const attempt = useAttempt();
  const isBusy = isAtWork(detail);
  const change = (text: string) => setDraft(keepDraft(detail.id, text));
  const send = async () => {
    const body: ReplyBody = { prompt, idempotencyKey: key, whenBusy: isBusy ? whenBusy : "queue" };
    const path = `sessions/${encodeURIComponent(detail.id)}/reply`;
    if (prompt.trim() === "" || !(await attempt.run(() => post(path, body)))) return;
    // Empties the field, unless the user has typed meanwhile: a changed text has a new `key`, and is the next prompt.
    if (draftFor(detail.id).key === key) change("");
  };
  const submit = (event: Event) => {
    event.preventDefault();
    void send();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.isComposing && (event.ctrlKey || event.metaKey)) submit(event);
  };
  return (
    <form class={styles["reply"]} onSubmit={submit}>
      <textarea
        aria-label="Prompt"
        placeholder={isBusy ? "Add to the running turn, or queue a prompt…" : "What should Claude do next?"}
        rows={1}
        value={prompt}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div class={styles["row"]}>
        {isBusy && <Choice value={whenBusy} onChange={setWhenBusy} />}
        <span class={classNames(styles, "soft", "hint")}>Ctrl+Enter sends</span>
        <button type="submit" class="primary" disabled={attempt.isBusy || prompt.trim() === ""}>
          {attempt.isBusy ? "Sending…" : "Send"}
        </button>
      </div>
      {attempt.problem !== undefined && (
        <p role="alert" class="problem">
          {attempt.problem}
        </p>
      )}
    </form>
  );
}

const CHOICES = [
  ["queue", "After this turn"],
  ["steer", "Into this turn"],
] as const;

function Choice({ onChange, value }: { readonly value: WhenBusy; readonly onChange: (value: WhenBusy) => void }) {
  return (
    <fieldset class={styles["choice"]}>
      <legend class="visually-hidden">A turn is running. When to deliver the prompt</legend>
      {CHOICES.map(([choice, words]) => (
        <label key={choice}>
          <input type="radio" name="when-busy" checked={value === choice} onChange={() => onChange(choice)} />
          {words}
        </label>
      ))}
    </fieldset>
  );
}

/** Unsent prompt of a session. `drafts` keeps the text while other views are shown. */
interface ReplyDraft {
  readonly prompt: string;
  /** Idempotency key: repeated sending queues the prompt once. */
  readonly key: string;
}

const drafts = perUser(() => new Map<string, ReplyDraft>());

function draftFor(sessionId: string): ReplyDraft {
  return drafts.peek().get(sessionId) ?? { prompt: "", key: newRetryKey() };
}

function keepDraft(sessionId: string, prompt: string): ReplyDraft {
  const draft = { prompt, key: newRetryKey() };
  if (prompt === "") drafts.peek().delete(sessionId);
  else drafts.peek().set(sessionId, draft);
  return draft;
}
