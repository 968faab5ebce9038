import { createHash } from "node:crypto";

/** Named users of a server, as its operator configures them; tokens are derived from the names. */

const tokenOf = (name: string) => `ccm_of-${name}-in-these-tests-0123456789-abcdefgh`;

interface Named<N extends string> {
  readonly args: string[];
  readonly tokens: Readonly<Record<N, string>>;
}

/** `terms`: terms of each user in the setting `principals`, without the token. Default of `allowDirs`: "any". */
export function namedUsers<N extends string>(terms: Readonly<Record<N, object>>): Named<N> {
  const names = Object.keys(terms) as N[];
  const digest = (name: N) => createHash("sha256").update(tokenOf(name)).digest("hex");
  const principals = names.map((name) => [name, { allowDirs: "any", ...terms[name], tokenSha256: digest(name) }]);
  return {
    args: ["--principals", JSON.stringify(Object.fromEntries(principals))],
    tokens: Object.fromEntries(names.map((name) => [name, tokenOf(name)])) as Record<N, string>,
  };
}
