import type { Gate } from "../../../src/engine/policy/gate.ts";
import { type Operator, ownPolicy } from "../../../src/engine/policy/operator.ts";
import { POLICY } from "../step/walk.ts";

/** The policy of an operator who has restricted nothing but the bypass of permissions. */
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

/** The terms of that operator. */
export const OPERATOR: Operator = {
  gate: OPEN_GATE,
  limits: { ...POLICY, approvalChain: ["caller"], unattended: { requests: "wait", maxUsd: 10 } },
  initMs: POLICY.initMs,
  environmentId: "",
};

export const OPEN_POLICY = ownPolicy(OPERATOR, "local");
