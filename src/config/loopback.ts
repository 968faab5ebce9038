/** Tests whether an address is safe from other readers and writers. */

/** True for https, and for http on loopback. Elsewhere an attacker could change the answer, and so sign tokens. */
export function isSafeAddress(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { hostname, protocol } = new URL(address);
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

/** True if only this machine reaches `host`: a name or an address, IPv6 with or without brackets. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  return name === "localhost" || name === "::1" || /^127(\.\d{1,3}){3}$/.test(name);
}
