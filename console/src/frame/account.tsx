import { ActionButton } from "../parts/action-button.tsx";
import { displayLine } from "../parts/text.ts";
import { me, signOut } from "../state/me.ts";
import { helpIsOpen } from "./key-help.tsx";
import { classNames } from "../parts/class-names.ts";
import styles from "./frame.module.css";

/** Menu with the signed-in user, `Help` and "Sign out". */
export function Account() {
  if (!me.value) return null;
  const { principal, scopes, signsIn, version } = me.value;
  const name = displayLine(principal);
  return (
    <div>
      <button
        type="button"
        class={classNames(styles, "quiet", "account-button")}
        popoverTarget="account"
        aria-label={`${name}: account and help`}
        title={name}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="5.5" r="2.75" />
          <path d="M2.75 14c.4-3 2.4-4.5 5.25-4.5s4.85 1.5 5.25 4.5" />
        </svg>
        <span class={styles["account-name"]}>{name}</span>
      </button>
      <div id="account" popover="auto" class={styles["account-menu"]}>
        <p>
          {signsIn ? "Signed in as" : "You are"} <strong>{name}</strong>
          <br />
          <span class="soft">Scopes: {scopes.join(", ")}</span>
        </p>
        <button type="button" onClick={() => (helpIsOpen.value = true)}>
          Keyboard shortcuts <kbd>?</kbd>
        </button>
        {signsIn && <ActionButton act={signOut}>Sign out</ActionButton>}
        <p class="soft">claude-agents-mcp {version}</p>
      </div>
    </div>
  );
}
