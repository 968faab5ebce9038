import type { ComponentChildren, InputHTMLAttributes } from "preact";
import { useEffect } from "preact/hooks";
import { directories, reload } from "../sessions/list.ts";
import { displayText } from "../parts/text.ts";
import { me } from "../state/me.ts";
import { draft, chosenMode, write } from "./draft.ts";
import styles from "./start.module.css";

const NAME = { spellcheck: false, autocapitalize: "off", autocomplete: "off" } as const;
const TURNS = { type: "number", min: "1", step: "1", inputMode: "numeric" } as const;
const MONEY = { type: "number", min: "0.01", step: "any", inputMode: "decimal" } as const;

/** Fields other than the prompt, all optional. */
export function Choices() {
  return (
    <div class={styles["choices"]}>
      <div class={styles["wide"]}>
        <TextField
          name="cwd"
          label="Directory"
          hint="Working directory: an absolute path on the server’s machine."
          input={{ ...NAME, list: "start-directories", placeholder: me.value?.cwd, class: styles["path"] }}
        />
        <Directories />
      </div>
      <ProfileField />
      <ModeField />
      <ChoiceField
        name="onLimit"
        label="At a limit"
        hint="When the plan, a reserve or a budget leaves no room."
        choices={[
          ["", "As the operator says"],
          ["report", "End the turn"],
          ["wait", "Wait, then go on"],
        ]}
      />
      <ChoiceField
        name="priority"
        label="Priority"
        hint="Background sessions yield to all others."
        choices={[
          ["", "Normal"],
          ["background", "Background"],
        ]}
      />
      <TextField
        name="model"
        label="Model"
        hint="An alias such as sonnet or opus, or a full model id."
        input={{ ...NAME, placeholder: "Claude Code’s default" }}
      />
      <TextField
        name="maxTurns"
        label="Maximum model calls"
        hint="Maximum number of model calls for this prompt."
        input={{ ...TURNS, placeholder: "No limit" }}
      />
      <TextField
        name="maxBudgetUsd"
        label="Budget in USD"
        hint="The session stops when this amount is spent."
        input={{ ...MONEY, placeholder: "No limit" }}
      />
    </div>
  );
}

interface Text {
  readonly name: "cwd" | "model" | "maxTurns" | "maxBudgetUsd";
  readonly label: string;
  readonly hint: string;
  readonly input: InputHTMLAttributes;
}

function TextField({ name, label, hint, input }: Text) {
  const id = `start-${name}`;
  return (
    <Field id={id} label={label} hint={hint}>
      <input
        {...input}
        id={id}
        aria-describedby={`${id}-hint`}
        value={draft.value[name]}
        onInput={({ currentTarget }) => write({ [name]: currentTarget.value })}
      />
    </Field>
  );
}

interface Choice {
  readonly name: "onLimit" | "priority" | "profile";
  readonly label: string;
  readonly hint: string;
  /** Value and words of each choice; "" is the default. */
  readonly choices: readonly (readonly [value: string, words: string])[];
}

function ChoiceField({ choices, name, label, hint }: Choice) {
  const id = `start-${name}`;
  return (
    <Field id={id} label={label} hint={hint}>
      <select
        id={id}
        aria-describedby={`${id}-hint`}
        value={draft.value[name]}
        onChange={({ currentTarget }) => write({ [name]: currentTarget.value })}
      >
        {choices.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** Choice of a profile, if the operator has any for the user. */
function ProfileField() {
  const profiles = me.value?.profiles ?? [];
  if (profiles.length === 0) return null;
  const chosen = profiles.find(({ name }) => name === draft.value.profile);
  const hint = chosen?.description ?? "Options, account and limits that the operator has put together.";
  const choices = profiles.map(({ name }) => [name, name] as const);
  return <ChoiceField name="profile" label="Profile" hint={displayText(hint)} choices={[["", "None"], ...choices]} />;
}

interface Labelled {
  readonly id: string;
  readonly label: string;
  readonly hint: string;
  readonly children: ComponentChildren;
}

function Field({ id, label, hint, children }: Labelled) {
  return (
    <div class={styles["field"]}>
      <label htmlFor={id}>{label}</label>
      {children}
      <p id={`${id}-hint`} class={styles["hint"]}>
        {hint}
      </p>
    </div>
  );
}

function ModeField() {
  const modes = me.value?.permissionModes ?? [];
  const chosen = chosenMode(draft.value);
  return (
    <Field id="start-mode" label="Permissions" hint={modeWords(chosen)}>
      <select
        id="start-mode"
        aria-describedby="start-mode-hint"
        value={chosen}
        onChange={({ currentTarget }) => write({ permissionMode: currentTarget.value })}
      >
        {draft.value.profile !== "" && <option value="">As the profile says</option>}
        {modes.map((mode) => (
          <option key={mode} value={mode}>
            {modeName(mode)}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** Directories of earlier sessions. */
function Directories() {
  const isUnknown = directories.value.length === 0;
  useEffect(() => {
    if (isUnknown) void reload();
  }, [isUnknown]);
  return (
    <datalist id="start-directories">
      {directories.value.map((path) => (
        <option key={path}>{path}</option>
      ))}
    </datalist>
  );
}

/** Name and description of permission modes; the keys are Claude Code's. */
const WORDS: Readonly<Record<string, readonly [string, string]>> = {
  default: ["Ask first", "Asks before it changes files, runs commands or uses the network."],
  acceptEdits: ["Accept edits", "Changes files in its directory without asking. Asks for everything else."],
  plan: ["Plan", "Reads and plans. Changes nothing until you approve the plan."],
  dontAsk: ["Never ask", "Runs what your rules allow and denies everything that would need approval."],
  auto: ["Auto", "A model reviews each request and allows harmless ones."],
  bypassPermissions: ["Allow everything", "Never asks: every tool runs at once. Use it in sandboxes only."],
};

function modeName(mode: string): string {
  return WORDS[mode]?.[0] ?? mode;
}

function modeWords(mode: string): string {
  return WORDS[mode]?.[1] ?? "";
}
