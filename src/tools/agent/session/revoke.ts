import { z } from "zod";
import { SessionId } from "../../prompt.ts";
import { defineAction } from "./action.ts";
import { publicView, rememberedOf } from "./view.ts";

/** Takes back an answer that was to hold until the session ends. */
export const revoke = defineAction({
  name: "revoke",
  scope: "approve",
  fields: {
    sessionId: SessionId,
    rule: z.string().min(1).max(2_000).exactOptional().describe("for revoke. Default: all"),
  },
  async run({ rule, sessionId }, call, deps) {
    const revoked = await deps.engine.revoke(call.principal, sessionId, {
      by: "caller",
      ...(rule !== undefined && { rule }),
    });
    const record = await deps.engine.get(call.principal, sessionId);
    const message = `Asked again from now on: ${revoked.join(", ")}.`;
    return { sessions: [{ ...publicView(record), ...rememberedOf(record) }], message };
  },
});
