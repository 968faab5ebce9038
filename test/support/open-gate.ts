import type { Gate } from "../../src/engine/policy/gate.ts";

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
