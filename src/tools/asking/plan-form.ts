import { z } from "zod";
import { REASON_MOST, type FormKind } from "./form-kind.ts";
import { block } from "./words.ts";

/** Is the plan good? */

const Filled = z.object({
  decision: z.enum(["approve", "keep_planning"]),
  feedback: z.string().max(REASON_MOST).nullish(),
});

const ROOM = { characters: 8_000, lines: 160 };

export const PLAN: FormKind = {
  declined: "The user does not agree with the plan. Keep planning.",
  show: ({ input }, where) => {
    const { plan } = input;
    const text = typeof plan === "string" && plan !== "" ? block(plan, ROOM) : "It has written no plan down.";
    return {
      message: `Claude Code has made a plan and asks to carry it out.\n${where}\n\n${text}`,
      schema: {
        type: "object",
        properties: {
          decision: {
            type: "string",
            title: "Decision",
            enum: ["approve", "keep_planning"],
            enumNames: ["Approve the plan", "Keep planning"],
          },
          feedback: {
            type: "string",
            title: "What should be different",
            description: "With keep planning: what Claude Code is told. May be left empty.",
            maxLength: REASON_MOST,
          },
        },
        required: ["decision"],
      },
    };
  },
  read(_, content) {
    const filled = Filled.safeParse(content).data;
    if (!filled) return undefined;
    if (filled.decision === "approve") return { decision: "allow" };
    const feedback = filled.feedback?.trim() ?? "";
    return { decision: "deny", denyMessage: feedback === "" ? PLAN.declined : feedback };
  },
};
