import type { PendingRequest } from "../../../src/console/wire.ts";
import type { JsonObject } from "../../../src/domain/json.ts";
import { Code, mayScroll, EscapedText } from "./escaped-text.tsx";
import { type Change as Changed, shapeOf } from "./words/subject.ts";
import { useMemo } from "preact/hooks";
import { changedLines, type LineRun } from "../parts/diff-lines.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./requests.module.css";

/** Shows the complete input of the tool: the command or the changes that `shapeOf` finds, then all other fields. */
export function InputShown({ request }: { readonly request: PendingRequest }) {
  const shape = shapeOf(request);
  return (
    <div class={styles["input"]}>
      {shape.kind === "command" && (
        <>
          {shape.description !== "" && (
            <p class={styles["description"]}>
              <EscapedText text={shape.description} />
            </p>
          )}
          <Code label="Command" text={shape.command} />
        </>
      )}
      {shape.kind === "commands" && (
        <ol class={styles["commands"]}>
          {shape.commands.map((command, place) => (
            <li key={place}>
              <Code label={`Command ${String(place + 1)}`} text={command} />
            </li>
          ))}
        </ol>
      )}
      {shape.kind === "diffs" && (
        <>
          <p class={styles["description"]}>
            <code>
              <EscapedText text={shape.path} />
            </code>
            {request.toolName === "Write" && <span class="soft"> is written as a whole: existing content is lost</span>}
          </p>
          {shape.diffs.map((change, place) => (
            <Change key={place} {...change} />
          ))}
        </>
      )}
      <Fields input={shape.rest} />
    </div>
  );
}

export function Fields({ input }: { readonly input: JsonObject }) {
  const entries = Object.entries(input);
  if (entries.length === 0) return undefined;
  return (
    <dl class={styles["fields"]}>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>
            <EscapedText text={name} />
          </dt>
          <dd>
            <Value name={name} value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

const SHORT = 200;

function Value({ name, value }: { readonly name: string; readonly value: unknown }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, undefined, 2);
  if (text.length > SHORT || text.includes("\n")) return <Code label={name} text={text} />;
  return (
    <code>
      <EscapedText text={text === "" ? '""' : text} />
    </code>
  );
}

/** Shows all lines of a change, because an approval covers all lines. */
function Change({ after, before }: Changed) {
  // Memoized, because any change in the list of requests would render thousands of lines again.
  const lines = useMemo(() => changedLines(before, after).map(renderRun), [before, after]);
  return (
    <pre
      class={classNames(styles, "code", "change")}
      dir="ltr"
      tabIndex={mayScroll(before + after) ? 0 : undefined}
      role="group"
      aria-label="Change"
    >
      {lines}
    </pre>
  );
}

const SPOKEN = { same: "", added: "Added: ", removed: "Removed: " } as const;

/** Renders few elements: only the first line of a run has a hidden word for screen readers. */
function renderRun({ kind, lines }: LineRun) {
  return lines.map((line, place) => (
    <span key={place} class={classNames(styles, "line", `line-${kind}`)}>
      {place === 0 && kind !== "same" && <span class="visually-hidden">{SPOKEN[kind]}</span>}
      <EscapedText text={line} />
    </span>
  ));
}
