import { z } from "zod";
import { MAX_REASON, pageMessage, reasonForm, type FormKind } from "./form-kind.ts";
import { fitsRoom, indentedBlock, inFewLines, inOneLine, shortened } from "./form-text.ts";

/** Form to approve a plan. */

const Filled = z.object({
  decision: z.enum(["approve", "keep_planning"]),
  feedback: z.string().max(MAX_REASON).nullish(),
});

const ROOM = { characters: 8_000, lines: 160 };

export const PLAN: FormKind = {
  declined: "The user does not agree with the plan. Keep planning.",
  show: ({ input }, context) => {
    const { where } = context;
    const { plan: written } = input;
    const plan = typeof written === "string" && written !== "" ? written : "(no plan was written)";
    const { isWhole, lines } = inFewLines(`Carry out this plan of Claude Code? ${plan}`);
    const isShownWhole = isWhole && !plan.includes("\n");
    return {
      ...pageMessage(isShownWhole || fitsRoom(plan, ROOM), lines, context),
      message: [...lines, ...(isShownWhole ? [] : [indentedBlock(plan, ROOM), ""]), where].join("\n"),
      schema: {
        type: "object",
        properties: {
          decision: {
            type: "string",
            title: "Decision",
            description: shortened(inOneLine(plan)),
            enum: ["approve", "keep_planning"],
            enumNames: ["Approve the plan", "Keep planning"],
          },
        },
        required: ["decision"],
      },
    };
  },
  readFirst(_, content) {
    const filled = Filled.safeParse(content).data;
    if (filled?.decision !== "keep_planning" || filled.feedback?.trim()) return undefined;
    return { filled: { decision: "keep_planning" }, denial: PLAN.declined };
  },
  showSecond: (_, { where }) =>
    reasonForm(`The plan is not carried out.\n${where}`, "feedback", "What should be different"),
  read(_, content) {
    const filled = Filled.safeParse(content).data;
    if (!filled) return undefined;
    if (filled.decision === "approve") return { decision: "allow" };
    const feedback = filled.feedback?.trim() ?? "";
    return { decision: "deny", denyMessage: feedback === "" ? PLAN.declined : feedback };
  },
};
