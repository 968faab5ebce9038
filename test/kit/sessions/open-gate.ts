import type { Gate } from "../../../src/engine/policy/gate.ts";
import { type Operator, ownPolicy } from "../../../src/engine/policy/operator.ts";
import { POLICY } from "../step/walk.ts";

/** Gate of an operator who restricts only `bypassPermissions`. */
export const OPEN_GATE: Gate = {
  callerApproves: "all",
  callersAnswer: true,
  sandbox: "off",
  sandboxDomains: [],
  allowsBypass: () => false,
  depth: 0,
  maxDepth: 1,
  grantsOperatorOptions: () => false,
  placesOf: () => undefined,
};

/** Terms of an operator with `OPEN_GATE`. */
export const OPERATOR: Operator = {
  gate: OPEN_GATE,
  limits: { ...POLICY, approvalChain: ["caller"], unattended: { requests: "wait", maxUsd: 10 } },
  initMs: POLICY.initMs,
  environmentId: "",
};

export const OPEN_POLICY = ownPolicy(OPERATOR, "local");
