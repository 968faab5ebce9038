import { useMemo, useState } from "preact/hooks";
import { count } from "../parts/format.ts";
import { displayText } from "../parts/text.ts";
import styles from "./timeline.module.css";

/** Characters shown at first (`SHOWN`) and at most (`MAX_CHARS`), because browsers cannot handle any length. */
const SHOWN = 20_000;
const MAX_CHARS = 1_000_000;

/** Output of a program, unformatted, in its own box. */
export function Output({ label, text }: { readonly label: string; readonly text: string }) {
  const [isWhole, setWhole] = useState(false);
  const end = isWhole ? MAX_CHARS : SHOWN;
  const shown = useMemo(() => displayText(text.slice(0, end)).replace(/\n+$/, ""), [text, end]);
  if (text.trim() === "") return <p class={styles["empty"]}>Nothing was written.</p>;
  return (
    <>
      <pre class={styles["output"]} tabIndex={0} role="group" aria-label={label}>
        {shown}
      </pre>
      {text.length > end && !isWhole && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show all {count(text.length, "character")}
        </button>
      )}
      {text.length > MAX_CHARS && isWhole && <p class={styles["empty"]}>The rest is too long to be shown here.</p>}
    </>
  );
}

/** Raw JSON, for users who need the exact data. */
export function Json({ label = "JSON", value }: { readonly label?: string; readonly value: unknown }) {
  return <Output label={label} text={JSON.stringify(value, null, 2)} />;
}
