import { BlockList, isIP } from "node:net";

/**
 * Tells addresses of the public internet from all others, for requests to a URL that a client has named.
 * Sources: https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry.
 */

/** Ranges of IPv4 for special purposes: this network, private, carrier-grade NAT, loopback, link-local, multicast and so on. */
const SPECIAL_IPV4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];

/** The only range of IPv6 with global unicast. Leaves out `::1`, mapped IPv4, NAT64, unique local, link-local and multicast. */
const GLOBAL_IPV6 = "2000::/3";

/** Ranges for special purposes in `GLOBAL_IPV6`: protocols (Teredo, ORCHID), documentation, 6to4, AS112. */
const SPECIAL_IPV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"];

const specialIpv4 = rangesOf(SPECIAL_IPV4, "ipv4");
const specialIpv6 = rangesOf(SPECIAL_IPV6, "ipv6");
const globalIpv6 = rangesOf([GLOBAL_IPV6], "ipv6");

function rangesOf(ranges: readonly string[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [net = "", bits] = range.split("/");
    list.addSubnet(net, Number(bits), family);
  }
  return list;
}

/** True for an address that is globally reachable. False for a text that is no address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !specialIpv4.check(address, "ipv4");
  // An address with a zone (`fe80::1%eth0`) is valid on a link only.
  if (family !== 6 || address.includes("%")) return false;
  return globalIpv6.check(address, "ipv6") && !specialIpv6.check(address, "ipv6");
}
