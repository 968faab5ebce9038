/**
 * What goes with a prompt, so that sending it again after a lost answer does nothing twice. crypto.randomUUID is not there
 * where the page comes over plain HTTP from another machine.
 */
export function newRetryKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
