import { z } from "zod";
import { PermissionMode } from "./permission.ts";

const request = <D extends string, S extends z.core.$ZodLooseShape>(what: D, shape: S) =>
  z.object({ do: z.literal(what), ...shape });

/**
 * Closes the process as soon as nothing runs in it; the next prompt resumes the session. With a `reason` its background tasks do
 * not keep it: `slot` frees it for a session that waits, `forbidden` is for a permission mode that the operator no longer allows
 * (waiting prompts are held, and the process ends with the turn).
 */
export const SuspendRequest = request("suspend", { reason: z.enum(["slot", "forbidden"]).exactOptional() });
export type SuspendRequest = z.infer<typeof SuspendRequest>;

/** What is asked of the running Claude Code itself, beside prompts and answers. */
export const ControlRequest = z.discriminatedUnion("do", [
  /** From now on, and for every later process of the session. */
  request("configure", { model: z.string().exactOptional(), permissionMode: PermissionMode.exactOptional() }),
  request("stop-task", { taskId: z.string() }),
  request("task-output", { taskId: z.string() }),
  SuspendRequest,
  /** How full the context is, and what the session has cost. */
  request("usage", {}),
  /** Files back to what they were before the prompt of this id; `dryRun` only tells what would change. */
  request("rewind", { promptId: z.string(), dryRun: z.boolean() }),
]);
export type ControlRequest = z.infer<typeof ControlRequest>;
