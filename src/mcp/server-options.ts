import type { Logger } from "../engine/ports.ts";
import type { Tool, ToolDeps } from "../tools/define.ts";
import type { ToolName } from "../tools/listed.ts";
import type { Leaving } from "../tools/leaving.ts";
import type { ReportedTools } from "../tools/reported-tools.ts";
import type { Prompt } from "./prompts/prompt.ts";
import type { Library } from "./resources/resource.ts";
import type { States, Unattended } from "./states.ts";
import { lazy } from "./lazy.ts";
import type { Following } from "./watch/subscriptions.ts";

/** What a client is served with, whatever it is connected by. */

/** What a server has to offer, which costs as much to load as the protocol does. */
export interface Offer {
  readonly tools: readonly Tool[];
  readonly library: Library;
  readonly prompts: readonly Prompt[];
}

export interface TaskOptions {
  /** So long what came of a task can be read at least, ms. */
  readonly keptMs: number;
}

export interface ServerOptions {
  /** What will be listed. */
  readonly toolNames: readonly ToolName[];
  /** Resolved by the first request for any of it. */
  readonly offer: () => Promise<Offer>;
  /** Given where descriptions are to follow what Claude Code says of its tools. */
  readonly reported: ReportedTools | undefined;
  /** The operator's setting; without one the client's limits decide (arguments/wait-limits.ts). */
  readonly limits: { readonly maxWaitMs?: number | undefined; readonly allowsDiskResume?: boolean };
  /** What calls that end with a form leave with their clients. */
  readonly states: States;
  /** The clients whose forms no person sees. */
  readonly unattended: Unattended;
  /** What ends with the client. Without it, a client that has a server of its own is taken to leave with that server. */
  readonly leaving?: Leaving | undefined;
  /** Some tool tells what goes on in log notifications. */
  readonly logs: boolean;
  /** Given where what is begun is a task for clients that know such. */
  readonly tasks: TaskOptions | undefined;
  /** Resolved by the first tool call: listing tools must not wait for what runs them. */
  readonly deps: () => Promise<ToolDeps>;
  /** Resolved by the first request to follow a resource; one for all connections. */
  readonly following: () => Promise<Following>;
  readonly info: { readonly name: string; readonly version: string };
  readonly log: Pick<Logger, "error" | "warn">;
}

/** One watch for all who follow sessions of this server. */
export function followingOf({
  deps,
  log,
  offer,
}: {
  readonly deps: () => Promise<Pick<ToolDeps, "engine">>;
  readonly log: ServerOptions["log"];
  readonly offer: () => Promise<Pick<Offer, "library">>;
}) {
  return lazy(async (): Promise<Following> => {
    const [{ SessionWatch }, { engine }, { library }] = await Promise.all([
      import("./watch/session-watch.ts"),
      deps(),
      offer(),
    ]);
    return { watch: new SessionWatch(engine.forCaller({ scopes: ["read"] }), log), library };
  });
}
