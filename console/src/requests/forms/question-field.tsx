import type { FormProps } from "./form.tsx";
import { EscapedText } from "../escaped-text.tsx";
import { withOther, withPick, type Choice, type Question } from "../words/questions.ts";
import styles from "../requests.module.css";

interface Props {
  readonly form: FormProps;
  /** `name` of the radio buttons or checkboxes. */
  readonly name: string;
  readonly question: Question;
  readonly choice: Choice;
  readonly isMissing: boolean;
  readonly onChange: (choice: Choice) => void;
}

export function QuestionField({ choice, form, isMissing, name, onChange, question }: Props) {
  const errorId = `missing-${name}`;
  const isDisabled = !form.mayAnswer || form.draft.isSending.value;
  const kind = question.multiSelect ? "checkbox" : "radio";
  return (
    <fieldset class={styles["question"]} disabled={isDisabled} aria-describedby={isMissing ? errorId : undefined}>
      <legend>
        {question.header !== "" && (
          <span class={styles["tag"]}>
            <EscapedText text={question.header} />
          </span>
        )}
        <EscapedText text={question.question} />
      </legend>
      {question.multiSelect && <p class={styles["hint"]}>Choose one or more.</p>}
      {question.options.map(({ description, label }, place) => (
        <label key={place} class={styles["option"]}>
          <input
            type={kind}
            name={name}
            checked={choice.picked.includes(place)}
            onChange={() => onChange(withPick(question, choice, place))}
          />
          <span>
            <b>
              <EscapedText text={label} />
            </b>
            {description !== "" && (
              <small>
                <EscapedText text={description} />
              </small>
            )}
          </span>
        </label>
      ))}
      <Other {...{ choice, kind, name, onChange, question }} />
      {isMissing && (
        <p class={styles["problem"]} id={errorId} role="alert">
          {choice.isOther ? "Write your answer, or choose an option." : "This question has no answer yet."}
        </p>
      )}
    </fieldset>
  );
}

type OtherProps = Pick<Props, "choice" | "name" | "onChange" | "question"> & { readonly kind: "checkbox" | "radio" };

/** Free-text answer. Typing switches `isOther` on. */
function Other({ choice, kind, name, onChange, question }: OtherProps) {
  const hasOptions = question.options.length > 0;
  const write = (other: string) => onChange({ ...withOther(question, choice, choice.isOther || other !== ""), other });
  return (
    <div class={styles["other"]}>
      {hasOptions && (
        <label class={styles["option"]}>
          <input
            type={kind}
            name={name}
            checked={choice.isOther}
            onChange={(event) => onChange(withOther(question, choice, event.currentTarget.checked))}
          />
          <span>Other</span>
        </label>
      )}
      <textarea
        rows={1}
        maxLength={20_000}
        aria-label="Your own answer"
        placeholder="Your own answer"
        value={choice.other}
        onInput={(event) => write(event.currentTarget.value)}
      />
    </div>
  );
}
