import type { ComponentChildren } from "preact";
import { Markdown } from "../../parts/markdown.tsx";
import { EditInput } from "./edit-input.tsx";
import { open } from "../draft.ts";
import { Buttons, MessageField, Press, send, type FormProps } from "./form.tsx";
import { Fields } from "../input.tsx";
import { KeyHint } from "./permission-form.tsx";
import styles from "../requests.module.css";

export function PlanForm({ facts, ...form }: FormProps & { readonly facts: ComponentChildren }) {
  const { draft, request } = form;
  const { plan, ...rest } = request.input;
  const what = draft.open.value;
  const text = typeof plan === "string" ? plan : "";
  return (
    <>
      {what !== "edit" && (
        <div class={styles["plan"]}>{text === "" ? <p>The plan is empty.</p> : <Markdown text={text} />}</div>
      )}
      {what === "edit" && <EditInput form={form} button="Approve with changes" />}
      {what !== "edit" && <Fields input={rest} />}
      {facts}
      {what === "message" && <MessageField form={form} label="What to change (optional)" button="Keep planning" />}
      {what === "nothing" && (
        <Buttons draft={draft}>
          <Press form={form} kind="primary" keyName="a" act={() => send(form, { decision: "allow" })}>
            Approve plan
          </Press>
          <Press form={form} keyName="d" decides={false} act={() => open(draft, "message")}>
            Keep planning…
          </Press>
          {text !== "" && (
            <Press form={form} decides={false} act={() => open(draft, "edit")}>
              Edit plan…
            </Press>
          )}
          {form.mayAnswer && (
            <KeyHint
              keys={[
                ["a", "approve"],
                ["d", "keep planning"],
              ]}
            />
          )}
        </Buttons>
      )}
    </>
  );
}
