import { Fragment } from "preact";
import type { CommandRun, FileChange, Receipt as ReceiptData } from "../../../../src/domain/receipt.ts";
import { count } from "../../parts/format.ts";
import { displayLine, displayText, truncateLine } from "../../parts/text.ts";
import { answerSourceText } from "../../state/answer-source.ts";
import { Disclosure } from "../disclosure.tsx";
import { useEventHref } from "../event-window.ts";
import type { ReceiptItem } from "../reducer/item.ts";
import {
  exitWords,
  hasFailed,
  linesSpoken,
  receiptFacts,
  shortHash,
  sourceWords,
  testFacts,
  totalsOf,
} from "./receipt-words.ts";
import { Rows } from "./rows.tsx";
import timeline from "../timeline.module.css";
import styles from "./evidence.module.css";
import facts from "../../parts/facts.module.css";

/** Receipt of a turn: one line, which opens to all facts. */
export function Receipt({ item: { receipt } }: { readonly item: ReceiptItem }) {
  const summary = (
    <span class={timeline["words"]}>
      <b>Receipt:</b>{" "}
      {receiptFacts(receipt).map(({ isWarning = false, spoken, text }, at) => (
        <Fragment key={at}>
          {at > 0 && <span class="soft"> · </span>}
          <span class={isWarning ? styles["warning"] : undefined} aria-hidden={spoken !== undefined}>
            {text}
          </span>
          {spoken !== undefined && <span class="visually-hidden">{spoken}</span>}
        </Fragment>
      ))}
    </span>
  );
  return <Disclosure summary={summary}>{() => <Whole receipt={receipt} />}</Disclosure>;
}

function Whole({ receipt }: { readonly receipt: ReceiptData }) {
  const { commands, commits, complete, files, gitFiles, notSeen, outside, requests } = receipt;
  return (
    <div class={styles["whole"]}>
      {!complete && (
        <Rows title="Incomplete" all={notSeen} isWarning>
          {displayText}
        </Rows>
      )}
      <Rows title="Changed outside the folders" all={outside} isWarning>
        {(path) => <code>{displayText(path)}</code>}
      </Rows>
      <Rows title="Changed in git's configuration and hooks" all={gitFiles} isWarning>
        {(path) => <code>{displayText(path)}</code>}
      </Rows>
      <Rows title="Files" all={files}>
        {(file) => <File file={file} />}
      </Rows>
      <Rows title="Commands" all={commands}>
        {(run) => <Command run={run} />}
      </Rows>
      <Rows title="Requests" all={requests}>
        {(request) => <Request request={request} />}
      </Rows>
      <Rows title="Commits" all={commits}>
        {({ hash, subject }) => (
          <>
            <code>{shortHash(hash)}</code> {displayLine(subject)}
          </>
        )}
      </Rows>
      <Rows title="Not seen" all={complete ? notSeen : []}>
        {displayText}
      </Rows>
      <Circumstances receipt={receipt} />
    </div>
  );
}

function File({ file: { by, change, from, lines, path, tests = {} } }: { readonly file: FileChange }) {
  return (
    <>
      {from !== undefined && (
        <>
          <code>{displayText(from)}</code> →{" "}
        </>
      )}
      <code>{displayText(path)}</code>
      {lines && (
        <>
          {" "}
          <span aria-hidden="true">
            <span class={styles["plus"]}>+{lines[0]}</span> <span class={styles["minus"]}>−{lines[1]}</span>
          </span>
          <span class="visually-hidden">, {linesSpoken(lines)},</span>
        </>
      )}{" "}
      <span class={change === "deleted" ? styles["minus"] : undefined}>{change}</span>{" "}
      <span class="soft">{sourceWords(by)}</span>
      {testFacts([tests]).map(({ text }) => (
        <Fragment key={text}>
          <span class="soft"> · </span>
          <span class={styles["warning"]}>{text}</span>
        </Fragment>
      ))}
    </>
  );
}

/** Command with a link to its call in the timeline. */
function Command({ run }: { readonly run: CommandRun }) {
  const href = useEventHref();
  const { check, command, eventId, exit } = run;
  const isWarning = check !== undefined && hasFailed(run);
  return (
    <>
      <a href={href(eventId)}>
        <code>{truncateLine(command, 200)}</code>
      </a>{" "}
      <span class={isWarning ? styles["warning"] : "soft"}>
        {[exitWords(exit), ...(check === undefined ? [] : [displayText(check)]), ...totalsOf(run)].join(" · ")}
      </span>
    </>
  );
}

function Request({ request }: { readonly request: ReceiptData["requests"][number] }) {
  const href = useEventHref();
  const { behavior, by, eventId, toolName } = request;
  return (
    <>
      <a href={href(eventId)}>{displayLine(toolName)}</a>{" "}
      <span class={behavior === "allow" ? "soft" : styles["minus"]}>
        {behavior === "allow" ? "allowed" : "denied"} {displayLine(answerSourceText(by))}
      </span>
    </>
  );
}

/** Heads of each folder, and numbers beside the turn's own work. */
function Circumstances({ receipt }: { readonly receipt: ReceiptData }) {
  const { background, between, by, denied, folders, leftOut, others } = receipt;
  const numbers = [
    [denied, "Denied", count(denied, "tool use")],
    [background, "Still running", count(background, "background task")],
    [others, "Worked here too", count(others, "other session")],
    [between, "Before the turn", `${count(between, "file")} changed since the previous turn`],
    [leftOut, "Not listed", `${count(leftOut, "entry", "entries")}: the receipt is bounded`],
  ] as const;
  return (
    <dl class={facts["facts"]}>
      {by === "tools" && <Named name="Seen by" text="results of tools alone: the folders could not be compared" />}
      {folders.map((folder) => (
        <Named key={folder.path} name={displayText(folder.path)} text={headWords(folder)} />
      ))}
      {numbers.map(([n, name, text]) => (n > 0 ? <Named key={name} name={name} text={text} /> : null))}
    </dl>
  );
}

function Named({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}

const KINDS: Readonly<Record<string, string>> = { files: "not in a git repository", unseen: "not seen" };

function headWords(folder: ReceiptData["folders"][number]): string {
  const { branchAfter, branchBefore, headAfter, headBefore, kind } = folder;
  if (kind !== "git") return KINDS[kind] ?? kind;
  const [before, after] = [headName(branchBefore, headBefore), headName(branchAfter, headAfter)];
  return before === after ? `at ${after}` : `${before} → ${after}`;
}

function headName(branch: string | undefined, head: string | undefined): string {
  const commit = head === undefined ? "no commit" : shortHash(head);
  return branch === undefined ? commit : `${displayLine(branch)} (${commit})`;
}
