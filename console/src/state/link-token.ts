/**
 * `claude-agents-mcp console` prints an address that ends in #token=...: it is read once and taken out of the address bar and
 * the history before anything else happens. Import this first.
 */

const PREFIX = "#token=";

let token = take();

/** The token that the page was opened with, once. */
export function takeLinkToken(): string | undefined {
  const taken = token;
  token = undefined;
  return taken;
}

/** Told when such an address is opened where the page is already. */
export function onLinkToken(listener: (token: string) => void): void {
  addEventListener("hashchange", () => {
    const found = take();
    if (found !== undefined) listener(found);
  });
}

function take(): string | undefined {
  if (!location.hash.startsWith(PREFIX)) return undefined;
  const found = location.hash.slice(PREFIX.length);
  history.replaceState(null, "", location.pathname + location.search);
  try {
    return decodeURIComponent(found);
  } catch {
    return found;
  }
}
