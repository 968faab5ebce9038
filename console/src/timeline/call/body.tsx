import { useMemo } from "preact/hooks";
import type { JsonObject } from "../../../../src/domain/json.ts";
import { hunksBetween, hunksReported } from "../../parts/diff-lines.ts";
import { Change as FileChange } from "../../parts/diff.tsx";
import { displayText } from "../../parts/text.ts";
import { objectsAt, textAt } from "../../parts/json.ts";
import { Markdown } from "../../parts/markdown.tsx";
import type { CallItem } from "../reducer/item.ts";
import { Output } from "../output.tsx";
import { Pictures } from "../pictures.tsx";
import { Fields } from "./input-fields.tsx";
import { fromFolder } from "./title.ts";
import styles from "../timeline.module.css";

interface Props {
  readonly item: CallItem;
  readonly cwd: string;
}

export function CallBody({ cwd, item }: Props) {
  const { name, output, pictures = [], state } = item;
  // Hides the output of successful `EDITS`, which only confirms the edit in many words.
  const isSaid = state === "done" && EDITS.has(name ?? "");
  return (
    <>
      <CallInput item={item} cwd={cwd} />
      {output !== undefined && !isSaid && (output !== "" || pictures.length === 0) && (
        <>
          <p class={styles["label"]}>{state === "failed" || state === "denied" ? "Error" : "Output"}</p>
          {name === "Agent" || name === "Task" ? <Markdown text={output} /> : <Output text={output} label="Output" />}
        </>
      )}
      {pictures.length > 0 && <Pictures pictures={pictures} />}
    </>
  );
}

const EDITS: ReadonlySet<string> = new Set(["Edit", "MultiEdit", "Write", "NotebookEdit", "TodoWrite"]);

function CallInput({ cwd, item }: Props) {
  const { input, name } = item;
  switch (name) {
    case undefined:
      return null;
    case "Bash":
      return <Command input={input} />;
    case "Edit":
    case "MultiEdit":
    case "NotebookEdit":
    case "Write":
      return <Change item={item} cwd={cwd} />;
    case "TodoWrite":
      return <Todos input={input} />;
    case "ExitPlanMode":
      return <Markdown text={textAt(input, "plan") ?? ""} />;
    case "Agent":
    case "Task":
      return <Markdown text={textAt(input, "prompt") ?? ""} />;
    default:
      return <Fields input={input} />;
  }
}

function Command({ input }: { readonly input: JsonObject }) {
  const description = textAt(input, "description");
  return (
    <>
      {description !== undefined && <p class="soft">{displayText(description)}</p>}
      <Output text={textAt(input, "command") ?? ""} label="Command" />
    </>
  );
}

/**
 * Changes as reported by the tool, otherwise as requested: then without line numbers, because only a part of the file is known.
 */
function Change({ cwd, item: { input, structured } }: Props) {
  const reported = useMemo(() => hunksReported(structured), [structured]);
  const requested = useMemo(() => (reported ? [] : changesRequested(input)), [input, reported]);
  const path = fromFolder(textAt(input, "file_path") ?? textAt(input, "notebook_path") ?? "", cwd);
  return (
    <>
      {reported && <FileChange hunks={reported} numbered path={path} />}
      {requested.map((hunks, at) => (
        <FileChange key={at} hunks={hunks} path={path} />
      ))}
    </>
  );
}

function changesRequested(input: JsonObject) {
  const edits = objectsAt(input, "edits");
  const all = edits.length === 0 ? [input] : edits;
  return all.map((edit) => {
    const after = textAt(edit, "new_string") ?? textAt(edit, "content") ?? textAt(edit, "new_source") ?? "";
    return hunksBetween(textAt(edit, "old_string") ?? "", after);
  });
}

const MARKS: ReadonlyMap<string, readonly [mark: string, words: string]> = new Map([
  ["completed", ["✓", "Done"]],
  ["in_progress", ["●", "In progress"]],
  ["pending", ["○", "To do"]],
]);

function Todos({ input }: { readonly input: JsonObject }) {
  return (
    <ul class={styles["todos"]}>
      {objectsAt(input, "todos").map((todo, at) => {
        const status = textAt(todo, "status") ?? "pending";
        const [mark, words] = MARKS.get(status) ?? ["○", status];
        return (
          <li key={at} class={status === "completed" || status === "in_progress" ? styles[status] : undefined}>
            <span aria-hidden="true">{mark}</span>
            <span class="visually-hidden">{displayText(words)}: </span>
            {displayText(textAt(todo, "content") ?? "")}
          </li>
        );
      })}
    </ul>
  );
}
