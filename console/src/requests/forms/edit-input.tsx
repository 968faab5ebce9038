import { useState } from "preact/hooks";
import { showProblem, setText } from "../draft.ts";
import { Buttons, Cancel, Field, Press, send, type FormProps } from "./form.tsx";
import { Code } from "../escaped-text.tsx";
import { allowWith, editableOf, parseEditedInput } from "../words/answer.ts";
import { isOdd } from "../words/invisible.ts";
import styles from "../requests.module.css";

interface Props {
  readonly form: FormProps;
  readonly button: string;
}

const MAX_ROWS = 24;

/** Edits the input to run: a single text, or the whole input as JSON. */
export function EditInput({ button, form }: Props) {
  const { draft, request } = form;
  const { key, text } = editableOf(request);
  const [wrongAt, setWrongAt] = useState<number | undefined>(undefined);
  const change = (typed: string) => {
    setText(draft, { edited: typed });
    setWrongAt(undefined);
  };
  const sendIt = () => {
    const edited = parseEditedInput(request, draft.edited.value);
    if (edited.ok) return send(form, allowWith(request, edited.value));
    showProblem(draft, edited.problem);
    setWrongAt(edited.at);
  };
  const rows = Math.min(MAX_ROWS, Math.max(3, text.split("\n").length + 1));
  return (
    <Field
      form={form}
      label={key === undefined ? "Input, as JSON" : `The ${key}`}
      value={draft.edited.value}
      rows={rows}
      isCode={request.type !== "plan"}
      wrongAt={wrongAt}
      onText={change}
      onSend={sendIt}
    >
      {isOdd(draft.edited.value) && (
        <>
          <p class={styles["hint"]}>The text contains invisible characters. With them written out:</p>
          <Code label="With hidden characters written out" text={draft.edited.value} />
        </>
      )}
      {key === "command" && (
        <p class={styles["hint"]}>
          Deny rules are checked again, but cd, $, globs and backslashes hide files from them.
        </p>
      )}
      <Buttons draft={draft}>
        <Press form={form} kind="primary" act={sendIt}>
          {button}
        </Press>
        <button type="button" class="quiet" disabled={draft.edited.value === text} onClick={() => change(text)}>
          Reset
        </button>
        <Cancel draft={draft} />
        <span class={styles["hint"]}>Ctrl+Enter sends</span>
      </Buttons>
    </Field>
  );
}
