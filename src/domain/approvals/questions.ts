import { z } from "zod";
import { invalidArgument } from "../error.ts";
import type { JsonObject } from "../json.ts";

/** Answers to `AskUserQuestion`, by the text of the question: a label, several labels, or free text. */

const Text = z.string().min(1).max(20_000);
export const Answers = z.record(z.string(), z.union([Text, z.array(Text).min(1).max(50)]));
export type Answers = z.infer<typeof Answers>;

const Input = z.object({
  questions: z.array(z.object({ question: z.string(), multiSelect: z.boolean().catch(false).default(false) })),
});

/** Returns the tool's `input` with the answers added. Throws `INVALID_ARGUMENT` with the text of the questions. */
export function withAnswers(input: JsonObject, answers: Answers | undefined): JsonObject {
  const parsed = Input.safeParse(input);
  const questions = parsed.success ? parsed.data.questions : [];
  const known = `The questions are: ${questions.map(({ question }) => quoted(question)).join(", ")}.`;
  if (answers === undefined) throw invalidArgument("answers", `is required: {question text: answer}. ${known}`);
  const stray = Object.keys(answers).find((text) => !questions.some(({ question }) => question === text));
  if (stray !== undefined) throw invalidArgument("answers", `${quoted(stray)} is not one of the questions. ${known}`);
  for (const { question, multiSelect } of questions) {
    const answer = Object.hasOwn(answers, question) ? answers[question] : undefined;
    if (answer === undefined) throw invalidArgument("answers", `${quoted(question)} has no answer. ${known}`);
    if (!multiSelect && Array.isArray(answer) && answer.length > 1) {
      throw invalidArgument("answers", `${quoted(question)} takes one answer, not ${String(answer.length)}.`);
    }
  }
  return { ...input, answers };
}

/** Maximum characters of a question in an error. */
const MAX_QUOTED = 300;

function quoted(text: string): string {
  const characters = Array.from(text.slice(0, MAX_QUOTED * 2)).slice(0, MAX_QUOTED);
  const beginning = characters.join("");
  return JSON.stringify(beginning.length < text.length ? `${beginning.slice(0, -1)}…` : text);
}
