import { z } from "zod";
import { Risk, RISK_LEVELS } from "./approvals/risk.ts";
import { ApproverName, UNASKED } from "./approvals/answer-source.ts";
import { JsonObject } from "./json.ts";

/** Permission modes of Claude Code. The former mode `delegate` no longer exists. */
export const PERMISSION_MODES = ["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"] as const;
export const PermissionMode = z.enum(PERMISSION_MODES);
export type PermissionMode = z.infer<typeof PermissionMode>;

/** Source of an answer, or cause of a request's end. `withdrawn`: Claude Code no longer waits for an answer. */
export const AnsweredBy = z.union([z.enum(UNASKED), ApproverName]);
export type AnsweredBy = z.infer<typeof AnsweredBy>;

/** Question that Claude Code needs answered before it goes on. `input` is the complete input of the tool. */
export const PermissionRequest = z.object({
  requestId: z.string(),
  kind: z.enum(["permission", "question"]),
  toolName: z.string(),
  input: JsonObject,
  toolUseId: z.string(),
  agentId: z.string().exactOptional(),
  suggestions: z.array(JsonObject).exactOptional(),
  decisionReason: z.string().exactOptional(),
  blockedPath: z.string().exactOptional(),
  /** Risk of the tool use. If absent, the request counts as the greatest risk. */
  risk: Risk.exactOptional(),
  /** Absolute paths in the request, as named and, for links, also their real paths. */
  paths: z.array(z.string()).exactOptional(),
  /** Real path of the session's folder, if a link names it. */
  cwd: z.string().exactOptional(),
  /** Reason why the request may not be allowed. If set, no approver is asked. */
  refused: z.string().exactOptional(),
});
export type PermissionRequest = z.infer<typeof PermissionRequest>;

const Rules = z.array(z.strictObject({ toolName: z.string().min(1), ruleContent: z.string().exactOptional() })).min(1);
const Folders = z.array(z.string().min(1)).min(1);

/** Destination of a permission change in Claude Code. `keptToSession` replaces all of them by `session`. */
const Destination = z.enum(["userSettings", "projectSettings", "localSettings", "session", "cliArg"]);

const update = <T extends string, S extends z.core.$ZodLooseShape>(type: T, shape: S) =>
  z.strictObject({ type: z.literal(type), destination: Destination.default("session"), ...shape });

const Behavior = z.enum(["allow", "deny", "ask"]);

/** Change of Claude Code's permissions (`PermissionUpdate` of the SDK). */
export const PermissionUpdate = z.discriminatedUnion("type", [
  update("addRules", { rules: Rules, behavior: Behavior }),
  update("replaceRules", { rules: Rules, behavior: Behavior }),
  update("removeRules", { rules: Rules, behavior: Behavior }),
  update("setMode", { mode: PermissionMode }),
  update("addDirectories", { directories: Folders }),
  update("removeDirectories", { directories: Folders }),
]);
export type PermissionUpdate = z.infer<typeof PermissionUpdate>;

/**
 * Replaces every destination by `session`: the suggestions of Claude Code for "always allow" write
 * `.claude/settings.local.json` of the project, and do not even apply in a session that does not read this file.
 */
export function keptToSession(updates: readonly PermissionUpdate[]): PermissionUpdate[] {
  return updates.map((change) => ({ ...change, destination: "session" }));
}

/** Answer that goes back to Claude Code. */
export const Decision = z.discriminatedUnion("behavior", [
  z.object({
    behavior: z.literal("allow"),
    updatedInput: JsonObject.exactOptional(),
    updatedPermissions: z.array(PermissionUpdate).exactOptional(),
  }),
  z.object({ behavior: z.literal("deny"), message: z.string(), interrupt: z.boolean().exactOptional() }),
]);
export type Decision = z.infer<typeof Decision>;

/**
 * Times of an open request, ms of time awake, counted by the owner: `ageMs` since its creation, `approverMs` with the present
 * approver, and the rest of both.
 */
export const RequestClock = z.object({
  ageMs: z.number(),
  leftMs: z.number(),
  approverMs: z.number(),
  approverLeftMs: z.number(),
});
export type RequestClock = z.infer<typeof RequestClock>;

/**
 * Open request in the state of a session; event `eventId` holds all of it. Times ending in `At` are ms since the epoch, for
 * display only: decisions by time use `clock`.
 */
export const OpenRequest = z.object({
  requestId: z.string(),
  kind: z.enum(["permission", "question"]),
  eventId: z.number().int(),
  toolName: z.string(),
  createdAt: z.number(),
  clock: RequestClock,
  /** Time at which the request is denied. Changes when the request is shown to its approver or goes to the next. */
  expiresAt: z.number(),
  /** Present approver, with the start and end of the approver's time. */
  approver: ApproverName,
  approverSince: z.number(),
  approverDeadline: z.number(),
  /** Time at which the request was first shown to the present approver. */
  deliveredAt: z.number().exactOptional(),
  /** Set if an earlier approver has seen the request. */
  seenBefore: z.boolean().exactOptional(),
  /** Set after `extend`: nothing shortens the time until the request goes to another approver. */
  extended: z.boolean().exactOptional(),
  /** Values from the first of two forms. */
  filled: JsonObject.exactOptional(),
  /** Denial of the user, who is still asked for the reason: text for Claude Code if none is given. Excludes an allow. */
  denial: z.string().exactOptional(),
  risk: z.enum(RISK_LEVELS).exactOptional(),
  /** True once the input was shown uncut; until then `updatedInput` is refused. */
  seenWhole: z.boolean(),
  /** Number of characters of the request's text that were read page by page. */
  seenTo: z.number().int().exactOptional(),
});
export type OpenRequest = z.infer<typeof OpenRequest>;
