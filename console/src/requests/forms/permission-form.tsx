import { EditInput } from "./edit-input.tsx";
import { keysAreOn } from "../../state/keys.ts";
import { open } from "../draft.ts";
import { Buttons, MessageField, Press, send, type FormProps } from "./form.tsx";
import { EscapedText } from "../escaped-text.tsx";
import { commandsOf } from "../words/subject.ts";
import { classNames } from "../../parts/class-names.ts";
import styles from "../requests.module.css";

export function PermissionForm(form: FormProps) {
  const { draft, request } = form;
  // The server refuses changes of a verification: its caller has named the commands.
  const isVerification = commandsOf(request) !== undefined;
  const remember = isVerification ? [] : request.remember;
  const what = draft.open.value;
  const rulesId = `rules-${draft.key}`;
  if (what === "edit") return <EditInput form={form} button="Allow with changes" />;
  if (what === "message") return <MessageField form={form} label="Message to Claude Code (optional)" button="Deny" />;
  return (
    <>
      <Buttons draft={draft}>
        <Press form={form} kind="primary" keyName="a" act={() => send(form, { decision: "allow" })}>
          Allow
        </Press>
        {remember.length > 0 && (
          <Press form={form} describedBy={rulesId} act={() => send(form, { decision: "allow_for_session" })}>
            Allow for session
          </Press>
        )}
        <Press form={form} kind="danger" keyName="d" decides={false} act={() => open(draft, "message")}>
          Deny…
        </Press>
        {!isVerification && (
          <Press form={form} decides={false} act={() => open(draft, "edit")}>
            Edit input…
          </Press>
        )}
        {form.mayAnswer && (
          <KeyHint
            keys={[
              ["a", "allow"],
              ["d", "deny"],
            ]}
          />
        )}
      </Buttons>
      {remember.length > 0 && (
        <p class={styles["rules"]} id={rulesId}>
          Allow for session also allows, until it ends:{" "}
          {remember.map((rule, place) => (
            <span key={rule}>
              {place > 0 && ", "}
              <code>
                <EscapedText text={rule} />
              </code>
            </span>
          ))}
        </p>
      )}
    </>
  );
}

interface HintProps {
  readonly keys: readonly (readonly [key: string, does: string])[];
}

/** Shortcuts that work while the card has the focus. */
export function KeyHint({ keys }: HintProps) {
  if (!keysAreOn.value) return undefined;
  return (
    <span class={classNames(styles, "hint", "keys")}>
      {keys.map(([key, does]) => (
        <span key={key}>
          <kbd>{key}</kbd> {does}
        </span>
      ))}
    </span>
  );
}
