import type { NotOurs } from "./listed.ts";
import type { Check } from "./suite.ts";

/** Compares the outcome of a scenario with its entry in not-ours.json. */

/** Check of all messages' form, in every scenario. */
const FORM = "wire-schema-valid";

export function isBad({ status }: Check): boolean {
  return status === "FAILURE" || status === "WARNING";
}

/** Returns ids of failed checks without duplicates; "nothing-checked" if no check but `FORM` ran. */
export function failuresOf(checks: readonly Check[]): string[] {
  const bad = checks.filter((check) => isBad(check)).map(({ id }) => id);
  const isGood = checks.some(({ id, status }) => status === "SUCCESS" && id !== FORM);
  if (bad.length === 0 && !isGood) return ["nothing-checked"];
  return [...new Set(bad)].toSorted();
}

/**
 * Returns failures that are not listed, and listed ones that did not fail, because a list must not excuse too much. `FORM` is
 * never excused.
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
