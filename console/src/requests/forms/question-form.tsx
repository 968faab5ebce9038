import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { setChoices, open } from "../draft.ts";
import { Buttons, MessageField, Press, send, type FormProps } from "./form.tsx";
import { Fields } from "../input.tsx";
import { KeyHint } from "./permission-form.tsx";
import { QuestionField } from "./question-field.tsx";
import { answersOf, NO_CHOICE, questionsIn, type Choice } from "../words/questions.ts";
import styles from "../requests.module.css";

/** Form for AskUserQuestion: options and free text for each question. */
export function QuestionForm({ facts, ...form }: FormProps & { readonly facts: ComponentChildren }) {
  const { draft, request } = form;
  const questions = questionsIn(request.input);
  const [missing, setMissing] = useState<readonly number[]>([]);
  const list = useRef<HTMLDivElement>(null);
  const change = (place: number, choice: Choice) => {
    const all = questions.map((_, each) => (each === place ? choice : (draft.choices.value[each] ?? NO_CHOICE)));
    setChoices(draft, all);
    setMissing(missing.filter((each) => each !== place));
  };
  const sendAnswers = () => {
    const { answers, missing: left } = answersOf(questions, draft.choices.value);
    setMissing(left);
    if (left.length === 0) return send(form, { decision: "allow", answers });
    list.current?.querySelectorAll("fieldset")[left[0] ?? 0]?.querySelector<HTMLElement>("input, textarea")?.focus();
  };
  return (
    <>
      <div class={styles["questions"]} ref={list}>
        {questions.length === 0 && <Fields input={request.input} />}
        {questions.map((question, place) => (
          <QuestionField
            key={place}
            form={form}
            name={`${draft.key}/${String(place)}`}
            question={question}
            choice={draft.choices.value[place] ?? NO_CHOICE}
            isMissing={missing.includes(place)}
            onChange={(choice) => change(place, choice)}
          />
        ))}
      </div>
      {facts}
      {draft.open.value === "message" ? (
        <MessageField form={form} label="Message to Claude Code (optional)" button="Decline" />
      ) : (
        <Buttons draft={draft}>
          <Press form={form} kind="primary" act={sendAnswers}>
            {questions.length > 1 ? "Send answers" : "Send answer"}
          </Press>
          <Press form={form} keyName="d" decides={false} act={() => open(draft, "message")}>
            Decline…
          </Press>
          {form.mayAnswer && <KeyHint keys={[["d", "decline"]]} />}
        </Buttons>
      )}
    </>
  );
}
