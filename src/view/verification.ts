import type { DataOf } from "../domain/event-table.ts";
import type { JsonObject } from "../domain/json.ts";
import { Verification } from "../domain/verification.ts";

/** Renders verifications. The event `verification.ended` has all fields. */

/** Returns the field `verification` of a result without the output of commands that have passed. */
export function briefVerification({ verification }: JsonObject): { readonly verification?: JsonObject } {
  const parsed = Verification.safeParse(verification);
  if (!parsed.success) return {};
  const commands = parsed.data.commands.map(({ tail, ...command }) =>
    command.exit === 0 ? command : { ...command, tail },
  );
  return { verification: { ...parsed.data, commands } };
}

/** Describes the beginning of a run on one line. */
export function verifyingLine({ attempt, of }: DataOf<"verification.started">): string {
  return `verifying, attempt ${String(attempt)} of ${String(of)}`;
}

/** Returns the verification as one event among others. The result has the last verification. */
export function verificationNotice({ attempts, commands, of, status }: Verification): JsonObject {
  const { command, exit } = commands.at(-1) ?? {};
  const red = status === "failed" ? { failed: { command, exit } } : {};
  return { verification: { status, attempts, of, ...red } };
}
