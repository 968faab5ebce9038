import { z } from "zod";
import { Risk, RISK_LEVELS } from "./approvals/risk.ts";
import { ApproverName, UNASKED } from "./approvals/answer-source.ts";
import { JsonObject } from "./json.ts";

/** Permission modes of Claude Code today. Seed 001's `delegate` no longer exists there. */
export const PERMISSION_MODES = ["default", "acceptEdits", "plan", "dontAsk", "auto", "bypassPermissions"] as const;
export const PermissionMode = z.enum(PERMISSION_MODES);
export type PermissionMode = z.infer<typeof PermissionMode>;

/** Who gave the answer to a request, or what ended it. `withdrawn`: Claude Code itself no longer waits for it. */
export const AnsweredBy = z.union([z.enum(UNASKED), ApproverName]);
export type AnsweredBy = z.infer<typeof AnsweredBy>;

/** What Claude Code wants to know before it goes on, as it asked it. `input` is the tool's input, whole. */
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
  /** Without one it counts as the greatest. */
  risk: Risk.exactOptional(),
  /** The absolute paths that it is about, as they were named and, where these are links, as they really are. */
  paths: z.array(z.string()).exactOptional(),
  /** The session's folder as it really is, where a link names it. */
  cwd: z.string().exactOptional(),
  /** Why it may not be allowed; no approver is asked. */
  refused: z.string().exactOptional(),
});
export type PermissionRequest = z.infer<typeof PermissionRequest>;

const Rules = z.array(z.strictObject({ toolName: z.string().min(1), ruleContent: z.string().exactOptional() })).min(1);
const Folders = z.array(z.string().min(1)).min(1);

/** Where Claude Code would keep a change of its permissions. We keep it to the session (see `keptToSession`). */
const Destination = z.enum(["userSettings", "projectSettings", "localSettings", "session", "cliArg"]);

const update = <T extends string, S extends z.core.$ZodLooseShape>(type: T, shape: S) =>
  z.strictObject({ type: z.literal(type), destination: Destination.default("session"), ...shape });

const Behavior = z.enum(["allow", "deny", "ask"]);

/** A change of Claude Code's permissions, in its own words (SDK PermissionUpdate). */
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
 * What Claude Code suggests for "always allow" writes `.claude/settings.local.json` of the project, and does not even
 * hold in a session that does not read that file: every change is kept to the session instead.
 */
export function keptToSession(updates: readonly PermissionUpdate[]): PermissionUpdate[] {
  return updates.map((change) => ({ ...change, destination: "session" }));
}

/** The answer that goes back to Claude Code. */
export const Decision = z.discriminatedUnion("behavior", [
  z.object({
    behavior: z.literal("allow"),
    updatedInput: JsonObject.exactOptional(),
    updatedPermissions: z.array(PermissionUpdate).exactOptional(),
  }),
  z.object({ behavior: z.literal("deny"), message: z.string(), interrupt: z.boolean().exactOptional() }),
]);
export type Decision = z.infer<typeof Decision>;

/** What the owner counts of an open request, in ms of time awake: how old it is and with its approver, and what is left of both. */
export const RequestClock = z.object({
  ageMs: z.number(),
  leftMs: z.number(),
  approverMs: z.number(),
  approverLeftMs: z.number(),
});
export type RequestClock = z.infer<typeof RequestClock>;

/**
 * A request that is open, as the state keeps it; the whole request is the event `eventId`. Times ending in `At` are ms since the
 * epoch, for people to read; what is decided by time is in `clock`.
 */
export const OpenRequest = z.object({
  requestId: z.string(),
  kind: z.enum(["permission", "question"]),
  eventId: z.number().int(),
  toolName: z.string(),
  createdAt: z.number(),
  clock: RequestClock,
  /** The request is denied at this time. It moves when the request is shown to its approver, or goes to the next. */
  expiresAt: z.number(),
  /** The approver that has it, since when, and until when. */
  approver: ApproverName,
  approverSince: z.number(),
  approverDeadline: z.number(),
  /** When it was first shown to whom it is with. */
  deliveredAt: z.number().exactOptional(),
  /** An earlier approver has seen it. */
  seenBefore: z.boolean().exactOptional(),
  /** Its time was extended: it is shortened by nothing as long as it is with the same approver. */
  extended: z.boolean().exactOptional(),
  /** What its person has filled in of a form that another one follows. */
  filled: JsonObject.exactOptional(),
  /** The user has denied it and is asked for the reason: what Claude Code is told without one. It can no longer be allowed. */
  denial: z.string().exactOptional(),
  /** What it would let happen. */
  risk: z.enum(RISK_LEVELS).exactOptional(),
  /** True once the input was shown uncut; until then `updatedInput` is refused. */
  seenWhole: z.boolean(),
  /** How far it was read page by page, in characters of its text. */
  seenTo: z.number().int().exactOptional(),
});
export type OpenRequest = z.infer<typeof OpenRequest>;
