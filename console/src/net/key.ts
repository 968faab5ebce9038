/**
 * Key of the page's sign-in. The encrypted token is in a cookie that no script can read. Browsers send cookies of 127.0.0.1 to
 * every port, so the cookie alone must be useless.
 */

const NAME = "claude-agents-mcp console key";

export function readKey(): string | undefined {
  return localStorage.getItem(NAME) ?? undefined;
}

export function keepKey(key: string | undefined): void {
  if (key === undefined) localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, key);
}

/** Calls `listener` when another tab signs in or out. */
export function onKeyChanged(listener: () => void): void {
  addEventListener("storage", ({ key }) => {
    if (key === NAME || key === null) listener();
  });
}
