import { classNames } from "../../parts/class-names.ts";
import { duration } from "../../parts/format.ts";
import { displayText, truncateLine } from "../../parts/text.ts";
import type { VerifiedCommand } from "../../../../src/domain/verification.ts";
import { Disclosure } from "../disclosure.tsx";
import { Output } from "../output.tsx";
import type { VerificationItem } from "../reducer/item.ts";
import { Rows } from "./rows.tsx";
import { endWords, isRed, verificationTitle } from "./verification-words.ts";
import timeline from "../timeline.module.css";
import styles from "./evidence.module.css";
import markdown from "../../parts/markdown.module.css";

/** Run of a verification: its state, which opens to the commands with their output. */
export function Verification({ item }: { readonly item: VerificationItem }) {
  const { commands, ended, state } = item;
  const { mark, more, text, tone } = verificationTitle(item);
  const results = ended?.commands ?? [];
  const summary = (
    <span class={timeline["words"]}>
      <span class={classNames(timeline, "state", tone === "running" ? tone : undefined)}>
        <span class={classNames(timeline, "glyph", tone)} aria-hidden="true">
          {mark}
        </span>
      </span>{" "}
      <b class={classNames(timeline, tone)}>{text}</b> {more !== "" && <span class="soft">{more}</span>}
    </span>
  );
  return (
    <Disclosure summary={summary}>
      {() => (
        <div class={styles["whole"]}>
          {ended?.message !== undefined && <p class={markdown["as-written"]}>{displayText(ended.message)}</p>}
          <Rows title="Commands run" all={results}>
            {(result) => <Result result={result} />}
          </Rows>
          <Rows title={state === "running" ? "Commands to run" : "Not run"} all={commands.slice(results.length)}>
            {(command) => <code>{displayText(command)}</code>}
          </Rows>
        </div>
      )}
    </Disclosure>
  );
}

/** Command with its end; opens to the end of its output. */
function Result({ result }: { readonly result: VerifiedCommand }) {
  const { command, ms, tail } = result;
  const words = (
    <span class={timeline["words"]}>
      <code>{truncateLine(command, 300)}</code>{" "}
      <span class={isRed(result) ? timeline["bad"] : "soft"}>{endWords(result)}</span>
      <span class="soft"> · {duration(ms)}</span>
    </span>
  );
  if (tail === "" && command.length <= 300) return words;
  return (
    <Disclosure summary={words} isOpenAtFirst={isRed(result)}>
      {() => (
        <>
          {command.length > 300 && <Output text={command} label="Command" />}
          {tail !== "" && <Output text={tail} label="End of the output" />}
        </>
      )}
    </Disclosure>
  );
}
