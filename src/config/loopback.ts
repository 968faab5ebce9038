/** Connections that others cannot read or change. */

/** https, or on this machine. Who can change an answer on its way can sign tokens. */
export function isSafe(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { hostname, protocol } = new URL(address);
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

/** Whether only this machine reaches it: a name or an address, an IPv6 one with or without its brackets. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  return name === "localhost" || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name);
}
