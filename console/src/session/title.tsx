import { useEffect, useRef, useState } from "preact/hooks";
import type { SessionDetail } from "../../../src/console/wire.ts";
import { SessionName } from "../parts/session-name.tsx";
import { may } from "../state/me.ts";
import { act, useAttempt } from "./act.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./session.module.css";

/** Title of the session, edited in place. */
export function Title({ detail: { id, title } }: { readonly detail: SessionDetail }) {
  const [isEdited, setEdited] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const close = () => {
    setEdited(false);
    // Waits a frame until the button is mounted again.
    requestAnimationFrame(() => opener.current?.focus());
  };
  if (isEdited) return <TitleForm id={id} title={title} onClose={close} />;
  return (
    <div class={styles["title"]}>
      <h1 tabIndex={-1}>
        <SessionName title={title} />
      </h1>
      {may("run") && (
        <button type="button" class={classNames(styles, "small", "rare")} ref={opener} onClick={() => setEdited(true)}>
          Rename
        </button>
      )}
    </div>
  );
}

interface FormProps {
  readonly id: string;
  readonly title: string;
  readonly onClose: () => void;
}

function TitleForm({ id, onClose, title }: FormProps) {
  const [text, setText] = useState(title);
  const attempt = useAttempt();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  const save = (event: Event) => {
    event.preventDefault();
    void attempt.run(() => act(id, "rename", { title: text.trim() })).then((ok) => ok && onClose());
  };
  return (
    <form class={styles["title"]} onSubmit={save}>
      <h1 class="visually-hidden">{title}</h1>
      <input
        aria-label="Title of the session"
        ref={field}
        maxLength={200}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      />
      <button type="submit" class="small primary" disabled={attempt.isBusy || text.trim() === ""}>
        Save
      </button>
      <button type="button" class="small" onClick={onClose}>
        Back
      </button>
      {attempt.problem !== undefined && (
        <p role="alert" class="problem">
          {attempt.problem}
        </p>
      )}
    </form>
  );
}
