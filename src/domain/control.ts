import { z } from "zod";
import { PermissionMode } from "./permission.ts";

const request = <D extends string, S extends z.core.$ZodLooseShape>(what: D, shape: S) =>
  z.object({ do: z.literal(what), ...shape });

/**
 * Close the process once nothing runs in it; the next prompt resumes. With `why` its background work does not hold it:
 * `room` is for a session that waits for a slot, `barred` a mode that the operator no longer allows; then what waits is
 * held, and the process ends with the turn.
 */
export const RestRequest = request("rest", { why: z.enum(["room", "barred"]).exactOptional() });
export type RestRequest = z.infer<typeof RestRequest>;

/** What is asked of the running Claude Code itself, beside prompts and answers. */
export const ControlRequest = z.discriminatedUnion("do", [
  /** From now on, and for every later process of the session. */
  request("configure", { model: z.string().exactOptional(), permissionMode: PermissionMode.exactOptional() }),
  request("stop-task", { taskId: z.string() }),
  request("task-output", { taskId: z.string() }),
  RestRequest,
  /** How full the context is, and what the session has cost. */
  request("usage", {}),
  /** Files back to what they were before the prompt of this id; `dryRun` only tells what would change. */
  request("rewind", { promptId: z.string(), dryRun: z.boolean() }),
]);
export type ControlRequest = z.infer<typeof ControlRequest>;
