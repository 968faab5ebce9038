import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { AnswerBody, PendingRequest } from "../../../../src/console/wire.ts";
import { showProblem, DOUBTS, open, takeFocus, setText, type Draft } from "../draft.ts";
import { doubtOf } from "../card-focus.ts";
import { EscapedText } from "../escaped-text.tsx";
import { sendAnswer } from "../sending.ts";
import { denial } from "../words/answer.ts";
import styles from "../requests.module.css";

/** Building blocks of the forms for permissions, plans and questions. */

export interface FormProps {
  readonly request: PendingRequest;
  readonly draft: Draft;
  readonly mayAnswer: boolean;
}

interface PressProps {
  readonly form: FormProps;
  readonly kind?: "primary" | "danger";
  /** Key that clicks the button while the card has the focus. */
  readonly keyName?: string;
  readonly describedBy?: string;
  /** False for a button that only opens a field, where a misclick does no harm. Default: true. */
  readonly decides?: boolean;
  readonly act: () => void;
  readonly children: ComponentChildren;
}

/** Button of a card. If `decides`, ignores doubtful clicks and shows the doubt. */
export function Press({ act, children, decides = true, describedBy, form, keyName, kind }: PressProps) {
  const { draft, mayAnswer } = form;
  const isSending = draft.isSending.value;
  const press = (event: MouseEvent) => {
    if (isSending) return;
    const doubt = decides ? doubtOf(draft.key, event) : undefined;
    if (doubt) showProblem(draft, DOUBTS[doubt]);
    else act();
  };
  return (
    <button
      type="button"
      class={kind}
      disabled={!mayAnswer}
      // `disabled` would lose the focus.
      aria-disabled={isSending}
      data-key={keyName}
      aria-keyshortcuts={keyName}
      aria-describedby={describedBy}
      onClick={press}
    >
      {children}
    </button>
  );
}

/** Buttons of a card with `draft.problem`. Sticky, so that the buttons of a long card stay in view. */
export function Buttons({ children, draft }: { readonly draft: Draft; readonly children: ComponentChildren }) {
  const problem = draft.problem.value;
  return (
    <div class={styles["actions"]}>
      {problem !== "" && (
        <p class={styles[Object.values(DOUBTS).includes(problem) ? "note" : "problem"]} role="alert">
          <EscapedText text={problem} />
        </p>
      )}
      <div class={styles["buttons"]}>{children}</div>
    </div>
  );
}

export function send({ draft, request }: FormProps, body: AnswerBody): void {
  void sendAnswer(request, draft, body);
}

interface MessageProps {
  readonly form: FormProps;
  readonly label: string;
  readonly button: string;
}

/** Field for the reason of a denial, `draft.message`; may be empty. */
export function MessageField({ button, form, label }: MessageProps) {
  const { draft } = form;
  const sendIt = () => send(form, denial(draft.message.value));
  return (
    <Field
      form={form}
      label={label}
      value={draft.message.value}
      onText={(message) => setText(draft, { message })}
      onSend={sendIt}
      rows={3}
    >
      <Buttons draft={draft}>
        <Press form={form} kind="danger" act={sendIt}>
          {button}
        </Press>
        <Cancel draft={draft} />
        <span class={styles["hint"]}>Ctrl+Enter sends</span>
      </Buttons>
    </Field>
  );
}

export function Cancel({ draft }: { readonly draft: Draft }) {
  return (
    <button type="button" class="quiet" onClick={(event) => close(draft, event.currentTarget)}>
      Cancel
    </button>
  );
}

/** Closes the field and returns the focus to the card. */
function close(draft: Draft, from: HTMLElement): void {
  const card = from.closest<HTMLElement>("[data-request]");
  open(draft, "nothing");
  card?.focus();
}

interface FieldProps {
  readonly form: FormProps;
  readonly label: string;
  readonly value: string;
  readonly rows: number;
  readonly isCode?: boolean;
  /** Position of an error in the text. */
  readonly wrongAt?: number | undefined;
  readonly onText: (text: string) => void;
  readonly onSend: () => void;
  readonly children: ComponentChildren;
}

/** Text field with buttons. Ctrl+Enter sends, Escape closes. */
export function Field({ children, form, isCode = false, label, onSend, onText, rows, value, wrongAt }: FieldProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  const id = `field-${form.draft.key}`;
  useEffect(() => {
    if (!takeFocus(form.draft)) return;
    area.current?.focus();
    area.current?.scrollIntoView({ block: "nearest" });
  }, [form.draft]);
  // `useLayoutEffect` sets the selection before the problem is painted: the user may type at once.
  useLayoutEffect(() => {
    if (wrongAt === undefined) return;
    area.current?.focus();
    area.current?.setSelectionRange(wrongAt, wrongAt + 1);
  }, [wrongAt]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && area.current) close(form.draft, area.current);
    if (event.key !== "Enter" || event.isComposing || !(event.ctrlKey || event.metaKey) || event.repeat) return;
    event.preventDefault();
    const doubt = doubtOf(form.draft.key, undefined);
    if (doubt) showProblem(form.draft, DOUBTS[doubt]);
    else onSend();
  };
  return (
    <div class={styles["field"]}>
      <label for={id}>{label}</label>
      <textarea
        id={id}
        ref={area}
        class={isCode ? styles["typed-code"] : undefined}
        rows={rows}
        spellcheck={!isCode}
        value={value}
        readOnly={form.draft.isSending.value}
        aria-invalid={wrongAt !== undefined}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {children}
    </div>
  );
}
