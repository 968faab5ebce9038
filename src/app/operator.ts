import type { Connection } from "./connections.ts";
import { limitsOf } from "./engine-limits.ts";
import { homeIn, type Terms } from "./terms.ts";
import { callerApprovesOf, hostsOf, rulesOf } from "../config/approvals/settings.ts";
import { confinements } from "../config/confinement.ts";
import { constants } from "../config/constants.ts";
import { atBounds, type Bounds } from "../config/bounds.ts";
import type { Confinement } from "../domain/principal.ts";
import type { Places } from "../domain/approvals/session-policy.ts";
import type { ConnectionTerms } from "../engine/api.ts";
import type { Operator } from "../engine/policy/operator.ts";
import { hasAnswerTool, listToolNames, findBypassTool } from "../tools/tool-names.ts";

/** Translates the settings of a client, or of the server itself, into the terms of the engine. */

interface Parts {
  /** Nesting depth: 0 outside sessions, 1 in a session of a claude-agents-mcp server, and so on. */
  readonly depth: number;
  readonly environmentId: string;
  /** Terms no client can loosen. */
  readonly bounds: Bounds;
  readonly allowsBypass: () => boolean;
}

type Given = Pick<Terms, "config" | "environment">;

export function operatorOf(
  { config, environment }: Given,
  { allowsBypass, bounds, depth, environmentId }: Parts,
): Operator {
  const own = gateAndLimits({ config, environment }, { allowsBypass, depth });
  const terms = { ...own, initMs: constants().sessionInitTimeoutMs, environmentId };
  if (Object.keys(bounds).length === 0) return terms;
  const atMost = atBounds(config, bounds);
  // `bounds` do not depend on the bypass switch of a connection.
  const bypass = () => bounds.allowBypass ?? true;
  return { ...terms, bounds: gateAndLimits({ config: atMost, environment }, { allowsBypass: bypass, depth }) };
}

/** Returns the terms under which the client of a connection starts and continues sessions. */
export function connectionTerms(
  { bypass, environmentId, id, named, ...given }: Given & Pick<Connection, "bypass" | "environmentId" | "id" | "named">,
  parts: Pick<Parts, "bounds" | "depth">,
): ConnectionTerms {
  return { ...operatorOf(given, { ...parts, environmentId, allowsBypass: () => bypass.isAllowed() }), id, named };
}

function gateAndLimits({ config, environment }: Given, { allowsBypass, depth }: Pick<Parts, "allowsBypass" | "depth">) {
  const confine = confinements(config);
  const listed = listToolNames(config.toolsets, config.query);
  const gate: Operator["gate"] = {
    allowsBypass,
    callersAnswer: hasAnswerTool(listed),
    switchedBy: findBypassTool(listed),
    callerApproves: callerApprovesOf(config),
    sandbox: config.sandbox,
    sandboxDomains: config.sandbox === "off" ? [] : sandboxDomainsOf(config),
    depth,
    maxDepth: config.maxDepth,
    grantsOperatorOptions: (principal) => confine(principal)?.operatorOptions === true,
    placesOf: (principal) => sessionPlaces(confine(principal)),
  };
  return { gate, limits: limitsOf(config, homeIn(environment)) };
}

/** Returns the hosts of `WebFetch` allow rules, which sandboxed commands may reach. */
function sandboxDomainsOf(config: Given["config"]): string[] {
  return hostsOf(rulesOf(config).allow);
}

/** Returns the fields of `confinement` to store with the principal's sessions. */
function sessionPlaces(confinement: Confinement | undefined): Places | undefined {
  if (!confinement) return undefined;
  const { allowDirs, spawnWrapper, trustDirs, trustsRecord } = confinement;
  return { allowDirs, trustDirs, trustsRecord, spawnWrapper };
}
