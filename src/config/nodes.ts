import { hostname } from "node:os";
import { ConfigError } from "./error.ts";
import { directories, milliseconds, named, words } from "./setting.ts";
import { LABEL, NODE_NAME, type Labels } from "../domain/place.ts";

/** Settings of a server among the machines of a store. */

export const nodeFields = {
  node: named(NODE_NAME, {
    placeholder: "<name>",
    allowed: 'a name of at most 63 letters, digits, ".", "_" and "-"',
    fallback: "the host name",
    flag: "node",
    variable: "CLAUDE_CODE_MCP_NODE",
    meaning:
      "Name of this server on a store of several machines. Sessions in its folders are bound to this name, so keep it after a restart. See docs/machines.md.",
  }),
  labels: words("none", {
    form: LABEL,
    allowed: "labels, each name=value of letters, digits, and . _ - /",
    flag: "labels",
    variable: "CLAUDE_CODE_MCP_LABELS",
    meaning: "Labels by which sessions may ask for this server. Such as gpu=a100,zone=eu.",
  }),
  sharedFolders: directories("none", {
    flag: "shared-folder",
    variable: "CLAUDE_CODE_MCP_SHARED_FOLDERS",
    meaning:
      "Folders that other machines have at the same path. Their sessions may go on there. Each needs the marker of `claude-agents-mcp nodes share`.",
  }),
  leaseMs: milliseconds(
    { least: 15_000, most: 600_000, fallback: 45_000 },
    {
      flag: "lease-ms",
      variable: "CLAUDE_CODE_MCP_LEASE_MS",
      meaning:
        "Time without the database until others take its sessions. This server ends its Claude Codes after three fifths of it.",
    },
  ),
};

interface NodeSettings {
  readonly node?: string | undefined;
  readonly labels: readonly string[];
}

/** Returns the name of this server on a store of several machines: by default `host`, in the form of a name. */
export function nodeName({ node }: Pick<NodeSettings, "node">, host = hostname()): string {
  return (
    node ??
    (host
      .replaceAll(/[^\w.-]/g, "-")
      .replace(/^[.-]+/, "")
      .slice(0, 63) ||
      "localhost")
  );
}

/** Throws ConfigError for a label with two values. */
export function labelsOf({ labels }: Pick<NodeSettings, "labels">): Labels {
  const pairs = labels.map((text) => [text.slice(0, text.indexOf("=")), text.slice(text.indexOf("=") + 1)] as const);
  const twice = pairs.find(([name], at) => pairs.findIndex(([other]) => other === name) !== at)?.[0];
  if (twice === undefined) return Object.fromEntries(pairs);
  throw new ConfigError(`--labels names ${twice} twice. Give it one value.`);
}
