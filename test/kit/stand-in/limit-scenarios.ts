import { agent, bash, type Scenarios } from "./calls.ts";

/** Scenarios of a subscription. */

const HOUR_S = 3600;
const NOW_S = Math.floor(Date.now() / 1000);
const plan = (used: number) => ({
  claim: "five_hour",
  fiveHour: { used, resetsAt: NOW_S + HOUR_S },
  sevenDay: { used: 0.3, resetsAt: NOW_S + 100 * HOUR_S },
});
const refused = (claim: string) => ({
  error: { status: 429 as const, plan: { claim, resetsAt: NOW_S + 50 * HOUR_S } },
});

export const AT_LIMITS: Scenarios = {
  "windows of the plan": async (stage) => {
    await stage.prompt([
      { tools: [bash("ls")], plan: plan(0.1) },
      { text: "One.", plan: plan(0.104) },
    ]);
    await stage.prompt([{ text: "Two." }]);
  },
  "requests paid beyond the plan": async (stage) => {
    const overage = { status: "allowed" as const, inUse: true, resetsAt: NOW_S + HOUR_S };
    await stage.prompt([{ text: "Paid.", plan: { ...plan(1), status: "rejected", overage } }]);
  },
  "a limit at the first request, and after a tool call": async (stage) => {
    await stage.prompt([{ error: { status: 429, plan: plan(1) }, text: "Never said." }]);
    await stage.prompt([{ tools: [bash("ls")] }, { ...refused("seven_day"), text: "Never said." }]);
    await stage.prompt([{ ...refused("seven_day_opus"), text: "Never said." }]);
  },
  "a fault that is no limit": async (stage) => {
    await stage.prompt([{ error: { status: 429 }, times: 20 }]);
  },
  "a subagent at a limit, and the turn that its end begins": async (stage) => {
    const gate = stage.gate("agent");
    const helper = [{ ...refused("five_hour"), gateBefore: gate, text: "Never said." }];
    const script = [{ tools: [agent(helper)] }, { text: "It is on its way." }, { ...refused("five_hour"), times: 9 }];
    await stage.prompt(script, { waitMs: 0 });
    await stage.told('"result":"It is on its way."');
    stage.world.model.release(gate);
    await stage.server.end(stage.sessionId);
  },
};
