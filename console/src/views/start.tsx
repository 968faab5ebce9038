import { may } from "../state/me.ts";
import { go, hrefOf } from "../state/route.ts";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiProblem, post } from "../net/api.ts";
import { Problem } from "../parts/problem.tsx";
import { keepNotices } from "../state/notices.ts";
import { bodyOf, clearDraft, draft, renewKey, write } from "../start/draft.ts";
import { Choices } from "../start/choices.tsx";
import { classNames } from "../parts/class-names.ts";
import styles from "../start/start.module.css";
import view from "./view.module.css";

export function StartView() {
  return (
    <div class={classNames(view, "view", styles["start"])}>
      <h1>New session</h1>
      {may("run") ? <StartForm /> : <StartForbidden />}
    </div>
  );
}

function StartForbidden() {
  return (
    <>
      <p>
        You can view sessions but not start any: that requires a token with the scope <code>run</code>. Ask the operator
        of this server for one.
      </p>
      <p>
        <a href={hrefOf({ view: "sessions" })}>All sessions</a>
      </p>
    </>
  );
}

interface Started {
  readonly sessionId: string;
  readonly warnings: readonly string[];
}

function StartForm() {
  const [isPending, setPending] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  const form = useRef<HTMLFormElement>(null);
  const prompt = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => prompt.current?.focus(), []);
  useEffect(() => sendOnKeys(form.current), []);
  const send = async () => {
    if (isPending) return;
    setPending(true);
    setProblem(undefined);
    try {
      const { sessionId, warnings } = await post<Started>("sessions", bodyOf(draft.value));
      keepNotices(sessionId, warnings);
      clearDraft();
      go({ view: "session", id: sessionId });
    } catch (error) {
      if (error instanceof ApiProblem && error.status === 409) renewKey();
      setProblem(error);
      setPending(false);
    }
  };
  return (
    <form
      ref={form}
      class={styles["form"]}
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div class={styles["field"]}>
        <label htmlFor="start-prompt">What is to be done?</label>
        <textarea
          id="start-prompt"
          ref={prompt}
          rows={7}
          required
          value={draft.value.prompt}
          placeholder="Find out why the login test fails, and fix it."
          onInput={({ currentTarget }) => write({ prompt: currentTarget.value })}
        />
      </div>
      <Choices />
      <Problem of={problem} what="The session was not started" />
      <div class={styles["end"]}>
        <button type="submit" class="primary" aria-busy={isPending} aria-disabled={isPending}>
          Start session
        </button>
        <span class={classNames(styles, "soft", "keys")}>
          <kbd>Ctrl</kbd> or <kbd>⌘</kbd> and <kbd>Enter</kbd>
        </span>
      </div>
    </form>
  );
}

/** Submits with Ctrl+Enter or Cmd+Enter from any field. */
function sendOnKeys(form: HTMLFormElement | null): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.isComposing || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form?.requestSubmit();
  };
  form?.addEventListener("keydown", onKey);
  return () => form?.removeEventListener("keydown", onKey);
}
