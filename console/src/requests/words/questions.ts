import type { AnswerBody } from "../../../../src/console/wire.ts";
import type { JsonObject } from "../../../../src/domain/json.ts";
import { objectsAt, textAt } from "../../parts/json.ts";

/** Questions of AskUserQuestion, and the options chosen so far. */

export interface Question {
  readonly question: string;
  readonly header: string;
  readonly multiSelect: boolean;
  readonly options: readonly { readonly label: string; readonly description: string }[];
}

/** State of the form for a question. */
export interface Choice {
  /** Indexes in `options`. */
  readonly picked: readonly number[];
  readonly isOther: boolean;
  readonly other: string;
}

export const NO_CHOICE: Choice = { picked: [], isOther: false, other: "" };

/** Returns [] if `input` is malformed. */
export function questionsIn(input: JsonObject): Question[] {
  return objectsAt(input, "questions").map((each) => ({
    question: textAt(each, "question") ?? "",
    header: textAt(each, "header") ?? "",
    multiSelect: each["multiSelect"] === true,
    options: objectsAt(each, "options").map((option) => ({
      label: textAt(option, "label") ?? "",
      description: textAt(option, "description") ?? "",
    })),
  }));
}

/** Toggles an option. Without `multiSelect`, the option replaces all others. */
export function withPick({ multiSelect }: Question, choice: Choice, place: number): Choice {
  if (!multiSelect) return { ...choice, picked: [place], isOther: false };
  const isPicked = choice.picked.includes(place);
  const picked = isPicked ? choice.picked.filter((each) => each !== place) : [...choice.picked, place];
  return { ...choice, picked: picked.toSorted((one, other) => one - other) };
}

/** Switches the free-text answer on or off. Without `multiSelect`, the free text replaces all options. */
export function withOther({ multiSelect }: Question, choice: Choice, isOther: boolean): Choice {
  return { ...choice, isOther, picked: multiSelect || !isOther ? choice.picked : [] };
}

export interface Answered {
  readonly answers: NonNullable<AnswerBody["answers"]>;
  /** Indexes of unanswered questions. */
  readonly missing: readonly number[];
}

export function answersOf(questions: readonly Question[], choices: readonly Choice[]): Answered {
  const answers: [string, string | readonly string[]][] = [];
  const missing: number[] = [];
  for (const [place, question] of questions.entries()) {
    const all = chosen(question, choices[place] ?? NO_CHOICE);
    const [first] = all;
    if (first === undefined) missing.push(place);
    else answers.push([question.question, question.multiSelect ? all : first]);
  }
  return { answers: Object.fromEntries(answers), missing };
}

function chosen({ options }: Question, { isOther, other, picked }: Choice): string[] {
  const own = other.trim();
  const hasOwn = own !== "" && (isOther || options.length === 0);
  // An empty free-text answer counts as missing.
  if (isOther && own === "") return [];
  return [...picked.flatMap((place) => options[place]?.label ?? []), ...(hasOwn ? [own] : [])];
}
