import { z } from "zod";
import { PermissionMode } from "./permission.ts";

const request = <D extends string, S extends z.core.$ZodLooseShape>(what: D, shape: S) =>
  z.object({ do: z.literal(what), ...shape });

/**
 * Closes the process as soon as nothing runs in it; the next prompt resumes the session. With a `reason`, background tasks do
 * not keep the process:
 * - `slot` frees the slot for a waiting session.
 * - `forbidden` is for a permission mode that the operator no longer allows: waiting prompts are held, and the process ends
 *   with the turn.
 */
export const SuspendRequest = request("suspend", { reason: z.enum(["slot", "forbidden"]).exactOptional() });
export type SuspendRequest = z.infer<typeof SuspendRequest>;

/** Requests to the running Claude Code itself, besides prompts and answers. */
export const ControlRequest = z.discriminatedUnion("do", [
  /** Applies from now on, also to every later process of the session. */
  request("configure", { model: z.string().exactOptional(), permissionMode: PermissionMode.exactOptional() }),
  request("stop-task", { taskId: z.string() }),
  request("task-output", { taskId: z.string() }),
  SuspendRequest,
  /** Returns the use of the context window and the cost of the session. */
  request("usage", {}),
  /** Restores files to their state before the prompt `promptId`. With `dryRun`, only reports the changes. */
  request("rewind", { promptId: z.string(), dryRun: z.boolean() }),
]);
export type ControlRequest = z.infer<typeof ControlRequest>;
