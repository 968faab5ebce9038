/**
 * The page's half of the sign-in. The other half is a cookie that no script can read; cookies of 127.0.0.1 go to every port
 * of it, which is why the cookie alone is worth nothing.
 */

const NAME = "claude-agents-mcp console key";

export function keyOfPage(): string | undefined {
  return localStorage.getItem(NAME) ?? undefined;
}

export function keepKey(key: string | undefined): void {
  if (key === undefined) localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, key);
}

/** Told when another tab has signed in or out. */
export function onKeyOfOthers(listener: () => void): void {
  addEventListener("storage", ({ key }) => {
    if (key === NAME || key === null) listener();
  });
}
