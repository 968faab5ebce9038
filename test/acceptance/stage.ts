import { describe } from "vitest";
import { amount } from "../kit/runner/amount.ts";
import type { ClientKind } from "../kit/clients/connection.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld, type World } from "../kit/world.ts";

/** True in the project `acceptance-real`, which plays the same scripts with the real Claude Code. */
export const REAL = process.env["ACCEPTANCE"] === "real";

/** The arguments and variables of a server, as its operator gives them. */
interface Operated {
  readonly args?: string[];
  readonly env?: Record<string, string>;
}

/** Means that a script has to play with. */
export interface Stage {
  readonly world: World;
  /** A client connected to a new server, or to the daemon. */
  readonly server: (operated?: Operated) => Promise<Server>;
}

/** The ways to run the server, with a client of each SDK. */
const WAYS = [
  { way: "through a daemon", daemon: "auto", client: "modern" },
  { way: "with a server of its own", daemon: "never", client: "v1" },
] as const satisfies { way: string; daemon: "auto" | "never"; client: ClientKind }[];

/** Plays a script through a daemon with the stand-in, and the other way with Claude Code (`--full`: both). Its tests run in order, and may build on each other. */
export function acceptance(title: string, script: (stage: Stage) => void): void {
  for (const { client, daemon, way } of REAL ? WAYS.slice(-amount(1, 2)) : WAYS.slice(0, 1)) {
    describe(`${title}, ${way}`, () => {
      const world = useWorld({ agent: REAL ? "real" : "stand-in", daemon });
      script({ world, server: async (operated) => world.server({ client, ...operated }) });
    });
  }
}

/** The properties of a tool in the list that a client gets, and its description. */
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
