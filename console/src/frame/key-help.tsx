import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { bindKeys, keysAreOn, isSearchRequested, switchKeys } from "../state/keys.ts";
import { may } from "../state/me.ts";
import { go } from "../state/route.ts";
import { VIEW_NAMES, type ViewName, VIEWS } from "../state/views.ts";
import styles from "./frame.module.css";

export const helpIsOpen = signal(false);

const ROWS: readonly (readonly [readonly string[], string])[] = [
  ...VIEW_NAMES.map((view) => [VIEWS[view].keys.split(" "), VIEWS[view].name] as const),
  [["/"], "Search sessions"],
  [["j"], "Next session in the list"],
  [["k"], "Previous session in the list"],
  [["Enter"], "Open the focused session"],
  [["Home"], "Go to the start of the session"],
  [["End"], "Go to the end of the session"],
  [["a"], "Allow the focused request"],
  [["d"], "Deny the focused request"],
  [["?"], "Show this help"],
];

/** Binds the global keyboard shortcuts and shows `Help`, which lists all shortcuts. */
export function KeyHelp() {
  useEffect(
    () =>
      bindKeys({
        ...Object.fromEntries(VIEW_NAMES.map((view) => [VIEWS[view].keys, () => open(view)])),
        "/": () => {
          isSearchRequested.value = true;
          go({ view: "sessions" });
        },
        "?": () => {
          helpIsOpen.value = true;
        },
      }),
    [],
  );
  return helpIsOpen.value ? <Help /> : null;
}

function open(view: ViewName): void {
  const { scope } = VIEWS[view];
  if (scope === undefined || may(scope)) go({ view });
}

function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class={styles["help"]} aria-labelledby="help-title" onClose={() => (helpIsOpen.value = false)}>
      <h2 id="help-title">Keyboard shortcuts</h2>
      <dl>
        {ROWS.map(([keys, what]) => (
          <div key={what}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class={styles["help-switch"]}>
        <input
          type="checkbox"
          checked={keysAreOn.value}
          onChange={({ currentTarget }) => switchKeys(currentTarget.checked)}
        />
        Shortcuts are on in this browser
      </label>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
