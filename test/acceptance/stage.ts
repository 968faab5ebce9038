import { describe } from "vitest";
import { amount } from "../kit/runner/amount.ts";
import type { ClientKind } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld, type World } from "../kit/world.ts";

/** True in the project `slow`, which plays these scripts with the real Claude Code. */
export const REAL = process.env["ACCEPTANCE"] === "real";

/** `args` and `env` of a server, as its operator sets them. */
interface Operated {
  readonly args?: string[];
  readonly env?: Record<string, string>;
}

/** Resources for a script. */
export interface Stage {
  readonly world: World;
  /** Connects a client to a new server, or to the daemon. */
  readonly server: (operated?: Operated) => Promise<Server>;
}

/** Ways to run the server, each with a `client` of another SDK. */
const WAYS = [
  { way: "through a daemon", daemon: "auto", client: "modern" },
  { way: "with a server of its own", daemon: "never", client: "v1" },
] as const satisfies { way: string; daemon: "auto" | "never"; client: ClientKind }[];

/**
 * Defines the tests of a script: through a daemon with the stand-in, or with a server of its own and Claude Code (`--full`:
 * both ways). Tests run in order, and may depend on earlier tests.
 */
export function acceptance(title: string, script: (stage: Stage) => void): void {
  for (const { client, daemon, way } of REAL ? WAYS.slice(-amount(1, 2)) : WAYS.slice(0, 1)) {
    describe(`${title}, ${way}`, () => {
      const world = useWorld({ agent: REAL ? "real" : "stand-in", daemon });
      script({ world, server: async (operated) => world.server({ client, ...operated }) });
    });
  }
}

/** Returns names of all tools, and description and parameters of `tool`, as listed to a client. */
export async function listed({ client }: Server, tool: string) {
  const { tools } = await client.listTools();
  const found = tools.find(({ name }) => name === tool);
  return {
    names: tools.map(({ name }) => name),
    description: found?.description ?? "",
    properties: Object.keys(found?.inputSchema.properties ?? {}),
    required: found?.inputSchema.required ?? [],
  };
}
