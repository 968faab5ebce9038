import { z } from "zod";
import { AppError } from "../../domain/error.ts";
import { withAnswers, type Answers } from "../../domain/approvals/questions.ts";
import type { FormKind } from "./form-kind.ts";
import type { FormField } from "./needs-input.ts";
import { block, inFewLines, inline } from "./words.ts";

/** What Claude Code wants to know (AskUserQuestion): a choice for each question, and room for words of one's own. */

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
const WORDS_MOST = 4_000;
const OTHER = "Or in your own words";

export const QUESTION: FormKind = {
  declined: "The user does not want to answer. Decide for yourself, or say what you need.",
  show: ({ input }, { where }) => {
    const questions = questionsIn(input);
    return {
      message: [...questions.map(told), where].join("\n"),
      schema: {
        type: "object",
        properties: Object.fromEntries(questions.flatMap((question, index) => fieldsFor(question, index + 1))),
        required: [],
      },
    };
  },
  read({ input }, content) {
    const answers: Answers = {};
    for (const [index, question] of questionsIn(input).entries()) {
      const answer = answerTo(question, content[choiceKey(index + 1)], content[wordsKey(index + 1)]);
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
const wordsKey = (place: number): string => `other${String(place)}`;

function questionsIn({ questions }: Record<string, unknown>): Question[] {
  return Questions.safeParse(questions).data ?? [];
}

function told({ options, question }: Question, index: number): string {
  const choices = options.map(({ description, label }) => `  ${inline(label, 80)}: ${inline(description, 300)}`);
  const { isWhole, lines } = inFewLines(`${index === 0 ? "Claude Code asks" : "And"}: ${question}`);
  return [...lines, ...(isWhole ? [] : [block(question, ROOM)]), ...choices].join("\n");
}

function fieldsFor({ header, multiSelect, options, question }: Question, place: number): [string, FormField][] {
  const about = { title: inline(header === "" ? question : header, 80), description: inline(question, 300) };
  // What comes back is looked up among the labels as they are, whatever is shown of them.
  const labels = options.map(({ label }) => inline(label, 80));
  const words: FormField = { type: "string", title: OTHER, description: about.description, maxLength: WORDS_MOST };
  if (labels.length === 0) return [[wordsKey(place), words]];
  const choice: FormField = multiSelect
    ? { type: "array", ...about, items: { type: "string", enum: labels } }
    : { type: "string", ...about, enum: labels };
  return [
    [choiceKey(place), choice],
    [wordsKey(place), words],
  ];
}

/** Words of one's own go before a choice, or are one more where there may be several. */
function answerTo(question: Question, choice: unknown, words: unknown): string | string[] | undefined {
  const { multiSelect, options } = question;
  const own = typeof words === "string" && words.length <= WORDS_MOST ? words.trim() : "";
  const chosen = [choice].flat().flatMap((shown) => {
    const option = options.find(({ label }) => inline(label, 80) === shown);
    return option ? [option.label] : [];
  });
  const all = own === "" ? chosen : multiSelect ? [...chosen, own] : [own];
  if (all.length === 0) return undefined;
  return multiSelect ? all : all[0];
}
