import { z } from "zod";
import { AppError } from "../../domain/error.ts";
import { withAnswers, type Answers } from "../../domain/approvals/questions.ts";
import { pageMessage, type FormKind } from "./form-kind.ts";
import type { FormField } from "./needs-input.ts";
import { fitsRoom, indentedBlock, inFewLines, toOneLine } from "./form-text.ts";

/** Form for AskUserQuestion: a choice for each question, or a free text. */

const Questions = z.array(
  z.object({
    question: z.string(),
    header: z.string().catch(""),
    multiSelect: z.boolean().catch(false),
    options: z.array(z.object({ label: z.string(), description: z.string().catch("") })).catch([]),
  }),
);
type Question = z.infer<typeof Questions>[number];

const ROOM = { characters: 1_000, lines: 12 };
const MAX_FREE_TEXT = 4_000;
const OWN_WORDS_CHOICE = "In my own words";

export const QUESTION: FormKind = {
  declined: "The user does not want to answer. Decide for yourself, or say what you need.",
  show: ({ input }, context) => {
    const { where } = context;
    const questions = questionsIn(input);
    const lines = questions.slice(0, 1).flatMap((question) => firstLines(question, 0).lines);
    return {
      ...pageMessage(questions.every(fitsForm), lines, context),
      message: [...questions.map(questionText), where].join("\n"),
      schema: {
        type: "object",
        properties: Object.fromEntries(questions.map((question, index) => fieldFor(question, index + 1))),
        required: questions.map((question, index) => fieldFor(question, index + 1)[0]),
      },
    };
  },
  readFirst({ input }, content) {
    const questions = questionsIn(input);
    const places = questions.map((_, index) => index + 1);
    const wantsSecond = questions.some((question, index) => wantsFreeText(question, content, index));
    if (!wantsSecond || places.some((place) => content[freeTextKey(place)] !== undefined)) return undefined;
    const chosen = questions.flatMap((question, index) => {
      const known = [content[choiceKey(index + 1)]].flat().filter((each) => choicesOf(question).includes(String(each)));
      return known.length > 0 ? [[choiceKey(index + 1), question.multiSelect ? known : known[0]] as const] : [];
    });
    return { filled: Object.fromEntries(chosen) };
  },
  showSecond({ input }, { where }, filled) {
    const open = [...questionsIn(input).entries()].filter(([index, question]) =>
      wantsFreeText(question, filled, index),
    );
    const fields = open.map(([index, question]) => [freeTextKey(index + 1), freeTextField(question)] as const);
    const message = [
      ...open.map(([, question]) => inFewLines(`${OWN_WORDS_CHOICE}: ${question.question}`).lines),
      where,
    ];
    return {
      message: message.flat().join("\n"),
      schema: { type: "object", properties: Object.fromEntries(fields), required: fields.map(([key]) => key) },
    };
  },
  read({ input }, content) {
    const answers: Answers = {};
    for (const [index, question] of questionsIn(input).entries()) {
      const answer = answerTo(question, content[choiceKey(index + 1)], content[freeTextKey(index + 1)]);
      if (answer !== undefined) answers[question.question] = answer;
    }
    try {
      return { decision: "allow", updatedInput: withAnswers(input, answers) };
    } catch (error) {
      if (error instanceof AppError) return undefined;
      throw error;
    }
  },
};

const choiceKey = (place: number): string => `answer${String(place)}`;
const freeTextKey = (place: number): string => `other${String(place)}`;

function questionsIn({ questions }: Record<string, unknown>): Question[] {
  return Questions.safeParse(questions).data ?? [];
}

const [MAX_LABEL, MAX_DESCRIPTION] = [80, 300];

/** True if `questionText` leaves nothing out. */
function fitsForm({ options, question }: Question): boolean {
  const isShort = ({ description, label }: Question["options"][number]) =>
    label.length <= MAX_LABEL && description.length <= MAX_DESCRIPTION;
  return fitsRoom(question, ROOM) && options.every(isShort);
}

function firstLines({ question }: Question, index: number): ReturnType<typeof inFewLines> {
  return inFewLines(`${index === 0 ? "Claude Code asks" : "And"}: ${question}`);
}

function questionText(asked: Question, index: number): string {
  const { options, question } = asked;
  const choices = options.map(
    ({ description, label }) => `  ${toOneLine(label, MAX_LABEL)}: ${toOneLine(description, MAX_DESCRIPTION)}`,
  );
  const { isWhole, lines } = firstLines(asked, index);
  return [...lines, ...(isWhole ? [] : [indentedBlock(question, ROOM)]), ...choices].join("\n");
}

/** Returns the labels as the form shows them. `answerTo` maps a shown label back to the full label. */
function labelsOf({ options }: Question): string[] {
  return options.map(({ label }) => toOneLine(label, MAX_LABEL));
}

/** Adds a choice for free text, which the second form asks for. */
function choicesOf(question: Question): string[] {
  return [...new Set([...labelsOf(question), OWN_WORDS_CHOICE])];
}

function wantsFreeText(question: Question, content: Record<string, unknown>, index: number): boolean {
  const isLabel = labelsOf(question).includes(OWN_WORDS_CHOICE);
  return !isLabel && [content[choiceKey(index + 1)]].flat().includes(OWN_WORDS_CHOICE);
}

function fieldFor(question: Question, place: number): [string, FormField] {
  if (question.options.length === 0) return [freeTextKey(place), freeTextField(question)];
  const about = titleAndDescription(question);
  const choices = choicesOf(question);
  return [
    choiceKey(place),
    question.multiSelect
      ? { type: "array", ...about, items: { type: "string", enum: choices } }
      : { type: "string", ...about, enum: choices },
  ];
}

function titleAndDescription({ header, question }: Question): { title: string; description: string } {
  return { title: toOneLine(header === "" ? question : header, 80), description: toOneLine(question, 300) };
}

function freeTextField(question: Question): FormField {
  return { type: "string", ...titleAndDescription(question), maxLength: MAX_FREE_TEXT };
}

/** Returns the free text in place of the choice; with `multiSelect`, in addition to the choices. */
function answerTo(question: Question, choice: unknown, freeText: unknown): string | string[] | undefined {
  const { multiSelect, options } = question;
  const own = typeof freeText === "string" && freeText.length <= MAX_FREE_TEXT ? freeText.trim() : "";
  const chosen = [choice].flat().flatMap((shown) => {
    const option = options.find(({ label }) => toOneLine(label, MAX_LABEL) === shown);
    return option ? [option.label] : [];
  });
  const all = own === "" ? chosen : multiSelect ? [...chosen, own] : [own];
  if (all.length === 0) return undefined;
  return multiSelect ? all : all[0];
}
