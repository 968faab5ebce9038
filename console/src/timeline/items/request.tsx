import { useContext } from "preact/hooks";
import { duration, timeOfDay } from "../../parts/format.ts";
import { textsAt } from "../../parts/json.ts";
import { truncateLine, displayText } from "../../parts/text.ts";
import { answerSourceText, isUndecided, approverName } from "../../state/answer-source.ts";
import { Fields } from "../call/input-fields.tsx";
import { callTitle } from "../call/title.ts";
import { EventWindowContext } from "../event-window.ts";
import { Disclosure } from "../disclosure.tsx";
import { Output } from "../output.tsx";
import type { RequestItem } from "../reducer/item.ts";
import styles from "../timeline.module.css";
import facts from "../../parts/facts.module.css";

export function Request({ item }: { readonly item: RequestItem }) {
  const { answer, request, at, passed } = item;
  const cwd = useContext(EventWindowContext)?.detail.value?.cwd ?? "";
  const { subject, verb } = callTitle(request.toolName, request.input, cwd);
  const summary = (
    <span class={styles["words"]}>
      <Verdict item={item} /> {verb} {subject !== "" && <code class={styles["truncated"]}>{subject}</code>}
      {answer && <span class="soft"> after {duration(answer.at - at)}</span>}
    </span>
  );
  return (
    <Disclosure summary={summary}>
      {() => (
        <>
          <dl class={facts["facts"]}>
            {request.decisionReason !== undefined && <Fact name="Reason" text={request.decisionReason} />}
            {request.risk && <Fact name="Risk" text={[RISKS[request.risk.level], ...request.risk.why].join(", ")} />}
            {passed.map((pass) => (
              <Fact
                key={pass.at}
                name={`Passed on at ${timeOfDay(pass.at)}`}
                text={`${approverName(pass.from)} → ${approverName(pass.to)}: ${WHY[pass.why] ?? pass.why}`}
              />
            ))}
            {answer && <Answer answer={answer} />}
          </dl>
          <Input request={request} />
        </>
      )}
    </Disclosure>
  );
}

/** Commands of a verification one by one, otherwise the fields of the input. */
function Input({ request: { input, toolName } }: Pick<RequestItem, "request">) {
  const commands = toolName === "Verification" ? textsAt(input, "commands") : undefined;
  if (!commands) return <Fields input={input} />;
  return commands.map((command, at) => <Output key={at} text={command} label={`Command ${String(at + 1)}`} />);
}

const RISKS = { reads: "reads files only", edits: "changes files", all: "can do anything" } as const;

const WHY: Readonly<Record<string, string>> = {
  time: "no answer in time",
  unreachable: "not reachable",
  dismissed: "declined to answer",
  unattended: "no person attends that client",
};

function Verdict({ item: { answer, request } }: { readonly item: RequestItem }) {
  if (!answer) return <b class={styles["warn"]}>Waiting for approval:</b>;
  const { behavior, by } = answer;
  if (isUndecided(by)) return <b class="soft">Closed {answerSourceText(by)}:</b>;
  const isAnswer = request.kind === "question" && behavior === "allow";
  const word = isAnswer ? "Answered" : behavior === "allow" ? "Allowed" : "Denied";
  return (
    <b class={styles[behavior === "allow" ? "good" : "bad"]}>
      {word} {answerSourceText(by)}:
    </b>
  );
}

function Answer({ answer }: { readonly answer: NonNullable<RequestItem["answer"]> }) {
  const { forSession, message, remembered, rule } = answer;
  return (
    <>
      {rule !== undefined && <Fact name="Rule" text={rule} />}
      {message !== undefined && <Fact name="Message" text={message} />}
      {forSession === true && <Fact name="For" text="the whole session" />}
      {remembered && remembered.length > 0 && <Fact name="Remembered" text={remembered.join(", ")} />}
    </>
  );
}

function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <dt>{truncateLine(name, 80)}</dt>
      <dd>{displayText(text)}</dd>
    </div>
  );
}
