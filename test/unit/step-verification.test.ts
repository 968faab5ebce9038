import { expect, it } from "vitest";
import { walkTo } from "../kit/step/cases.ts";
import { heard } from "../kit/step/evidence-cases.ts";
import { resultSignal, SECOND } from "../kit/step/walk.ts";

it("approvers are asked again about the commands of a prompt that joins the turn", () => {
  const walk = walkTo("asking for commands");
  const [request] = walk.state.requests;
  const answer = { requestId: request!.requestId, by: "user", forSession: false } as const;
  walk.command("answer", { ...answer, decision: { behavior: "allow" } });
  expect(heard(walk, "commands judged").summary).toBe("verification.started(1/2) verify");
  const verify = { commands: ["make other"], attempts: 0, timeoutMs: SECOND };
  walk.promptWith("p2", { whenBusy: "steer", verify });
  walk.hear(resultSignal({ promptIds: ["p2"], costUsdTotal: 1 }), { type: "idle" });
  expect(heard(walk, "commands judged").summary).toBe("permission.asked");
});
