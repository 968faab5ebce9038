import type { z } from "zod";
import type { ClosedPath, Settings } from "../../approvers/approver.ts";
import { APPROVERS } from "../../approvers/approvers.ts";
import type { ApproverName } from "../../domain/approvals/answer-source.ts";
import { parseApprovals } from "./approvals-flag.ts";

/** Collects settings, secrets and protected files of all approvers. */

export const approverFields: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  APPROVERS.flatMap(({ settings }) => Object.entries(settings ?? {})),
);

/** Throws ConfigError. */
export function checkApprovers(config: Settings & { readonly approvals: readonly string[] }): void {
  const { approvers } = parseApprovals(config.approvals);
  for (const { check, name } of APPROVERS) check?.(config, approvers.includes(name));
}

/** Environment variables that hold a secret of an approver. */
export const SECRET_VARIABLES: readonly string[] = APPROVERS.flatMap(({ secret }) => secret?.variable ?? []);

/** Reads secrets by name of the approver. Done at the start, so that the operator sees errors. Throws ConfigError. */
export async function readApproverSecrets(
  config: Settings,
  environment: NodeJS.ProcessEnv,
): Promise<ReadonlyMap<ApproverName, string>> {
  const found = new Map<ApproverName, string>();
  for (const { name, secret } of APPROVERS) {
    const read = await secret?.read(config, environment);
    if (read !== undefined) found.set(name, read);
  }
  return found;
}

export function closedByApprovers(config: Settings): ClosedPath[] {
  return APPROVERS.flatMap(({ closed }) => closed?.(config) ?? []);
}
