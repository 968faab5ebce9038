import type { NotOurs } from "./listed.ts";
import type { Check } from "./suite.ts";

/** Compares the outcome of a scenario with what is listed for it. */

/** The check of the form of all messages of the server, which each scenario has. */
const FORM = "wire-schema-valid";

export function isBad({ status }: Check): boolean {
  return status === "FAILURE" || status === "WARNING";
}

/** The ids of the checks that failed, each once. A scenario that could check nothing has not been passed either. */
export function failuresOf(checks: readonly Check[]): string[] {
  const bad = checks.filter((check) => isBad(check)).map(({ id }) => id);
  const isGood = checks.some(({ id, status }) => status === "SUCCESS" && id !== FORM);
  if (bad.length === 0 && !isGood) return ["nothing-checked"];
  return [...new Set(bad)].toSorted();
}

/**
 * Failures that are not listed, and listed ones that did not fail: a list that excuses too much is a fault as well.
 * No list excuses a message whose form breaks the protocol, whatever a server lacks.
 */
export function faultsIn(checks: readonly Check[], listed: Pick<NotOurs, "checks"> | undefined): string[] {
  const failed = failuresOf(checks);
  const isExcused = (id: string) => listed !== undefined && id !== FORM && (listed.checks?.includes(id) ?? true);
  const wording = (id: string) => checks.find((check) => check.id === id && isBad(check))?.errorMessage ?? "failed";
  const passed = listed?.checks?.filter((id) => !failed.includes(id)) ?? [];
  const stale = listed && failed.length === 0 && !listed.checks ? ["the scenario"] : passed;
  return [
    ...failed.filter((id) => !isExcused(id)).map((id) => `${id}: ${wording(id)}`),
    ...stale.map((what) => `${what} passes: take it out of not-ours.json`),
  ];
}
