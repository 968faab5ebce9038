import type { Logger } from "../engine/ports.ts";
import type { Tool, ToolDeps } from "../tools/define.ts";
import type { ToolName } from "../tools/tool-names.ts";
import type { ClientCleanup } from "../tools/client-cleanup.ts";
import type { DynamicDescription } from "../tools/dynamic-description.ts";
import type { Prompt } from "./prompts/define-prompt.ts";
import type { Library } from "./resources/resource.ts";
import type { EventOptions } from "./events/parts.ts";
import type { RequestStates, UnattendedClients } from "./form-state.ts";
import { lazy } from "./lazy.ts";
import type { SubscriptionParts } from "./watch/subscriptions.ts";

/** Options of an MCP server, for any transport. */

/** Content of a server. Loaded separately, because loading takes as long as loading the protocol. */
export interface ServerContent {
  readonly tools: readonly Tool[];
  readonly library: Library;
  readonly prompts: readonly Prompt[];
}

export interface TaskOptions {
  /** Minimum time for which the result of a task can be read, ms. */
  readonly keptMs: number;
}

export interface ServerOptions {
  /** Names of the listed tools, known before `offer` is loaded. */
  readonly toolNames: readonly ToolName[];
  /** Resolved by the first request for tools, resources or prompts. */
  readonly offer: () => Promise<ServerContent>;
  /** Descriptions with the tools reported by Claude Code; `undefined` to list fixed descriptions. */
  readonly reported: DynamicDescription | undefined;
  /** Limits set by the operator. Without `maxWaitMs`, the limits of the client apply (arguments/wait-limits.ts). */
  readonly limits: { readonly maxWaitMs?: number | undefined; readonly allowsDiskResume?: boolean };
  /** Signs the state that a client keeps while its user fills in a form. */
  readonly states: RequestStates;
  /** Clients that decline forms without a person. */
  readonly unattended: UnattendedClients;
  /** Ends work when the client leaves. `createMcpServer` creates a default for clients with a server of their own. */
  readonly leaving?: ClientCleanup | undefined;
  /** True if a tool sends log notifications. */
  readonly logs: boolean;
  /** Enables tasks for clients with the Tasks extension. */
  readonly tasks: TaskOptions | undefined;
  /** Enables the Events extension. */
  readonly events: EventOptions | undefined;
  /** Resolved by the first tool call, because listing tools must not wait for the engine. */
  readonly deps: () => Promise<ToolDeps>;
  /** Resolved by the first subscription; shared by all connections. */
  readonly following: () => Promise<SubscriptionParts>;
  readonly info: { readonly name: string; readonly version: string };
  readonly log: Pick<Logger, "error" | "warn">;
}

/** Creates the parts of all subscriptions on first use, with one watch for all connections. */
export function createFollowing({
  deps,
  log,
  offer,
}: {
  readonly deps: () => Promise<Pick<ToolDeps, "engine">>;
  readonly log: ServerOptions["log"];
  readonly offer: () => Promise<Pick<ServerContent, "library">>;
}) {
  return lazy(async (): Promise<SubscriptionParts> => {
    const [{ SessionWatch }, { engine }, { library }] = await Promise.all([
      import("./watch/session-watch.ts"),
      deps(),
      offer(),
    ]);
    return { watch: new SessionWatch(engine.forCaller({ scopes: ["read"] }), log), library };
  });
}
