import { z } from "zod";
import { AddedPolicy } from "./approvals/session-policy.ts";

/** Process of a session as recorded in its state, and where its conversation comes from. */

/**
 * Shim that holds the pipes of a process. `address` is its socket; `pid` and `startedAt` identify its own process. Only a
 * daemon named `daemon` with version `sdk` of the Agent SDK attaches. Without a daemon, the shim ends its processes after
 * `keepMs`.
 */
const Shim = z.object({
  address: z.string(),
  pid: z.number(),
  startedAt: z.string(),
  daemon: z.string(),
  sdk: z.string(),
  keepMs: z.number(),
});
export type ShimRef = z.infer<typeof Shim>;

/** Process of a session, identified by `pid` together with `startedAt`, its start time in the system's own unit. */
const RunningProcess = z.object({
  phase: z.enum(["starting", "live", "ending"]),
  id: z.string(),
  since: z.number(),
  /** Time in phase `starting`, ms of time awake. */
  startingMs: z.number().exactOptional(),
  /** True while a starting process waits for a slot and does not run yet. */
  waiting: z.boolean().exactOptional(),
  /** True while the program of a waiting process is being installed; the process asks for no slot until then. */
  installing: z.boolean().exactOptional(),
  /** Number of earlier starts that failed because their owner died before the process was recorded. */
  again: z.number().int().exactOptional(),
  pid: z.number().exactOptional(),
  startedAt: z.string().exactOptional(),
  /** Machine on which `pid` and `shim` mean these processes. Absent for the machine of the reader. */
  host: z.string().exactOptional(),
  /** Without `shim`, the server holds the pipes and the process ends with the server. */
  shim: Shim.exactOptional(),
  /** Highest number up to which every line of Claude Code is processed. */
  line: z.number().int().exactOptional(),
  /** Account that pays for the process, once the API has reported on its plan. */
  accountId: z.string().exactOptional(),
  /** Additions to the policy under which the session began, in force since the start of the process. */
  policy: AddedPolicy.exactOptional(),
});

/** Facts by which a process is found again: `pid` counts only together with `startedAt`, and only on `host`. */
export interface ProcessIdentity {
  readonly pid?: number;
  readonly startedAt?: string;
  readonly host?: string;
}

export function identityOf({ host, pid, startedAt }: ProcessIdentity): ProcessIdentity {
  return {
    ...(pid !== undefined && { pid }),
    ...(startedAt !== undefined && { startedAt }),
    ...(host !== undefined && { host }),
  };
}

/** Phases of a process: `starting` until initialize is answered, `ending` once asked to end, so that the exit is expected. */
export const SessionProcess = z.discriminatedUnion("phase", [z.object({ phase: z.literal("none") }), RunningProcess]);

/** Payer without any path, so that machines can be compared. `account` is a digest, absent if no file or variable names one. */
export const Payer = z.object({ kind: z.string(), account: z.string().exactOptional() });
export type Payer = z.infer<typeof Payer>;

/** Claude Code configuration and payer of the last process of a session; resuming with others is refused. */
export const Identity = z.object({
  configFolder: z.string(),
  paidBy: z.string(),
  payer: Payer.exactOptional(),
  /** Node with the configuration folder, on a store of several machines. */
  node: z.string().exactOptional(),
});
export type Identity = z.infer<typeof Identity>;

/** True if a process with `now` may go on with a session of `before`. Folders are compared on one node only. */
export function isSameIdentity(now: Identity, before: Identity): boolean {
  if (now.node !== before.node) return isSamePayer(now, before);
  return now.configFolder === before.configFolder && now.paidBy === before.paidBy;
}

/** Compares kind of payer and account, for processes on two machines. An account that nothing names equals any of its kind. */
export function isSamePayer(
  one: Pick<Identity, "paidBy" | "payer">,
  other: Pick<Identity, "paidBy" | "payer">,
): boolean {
  if (!one.payer || !other.payer) return one.paidBy === other.paidBy;
  const accounts = new Set([one.payer, other.payer].flatMap(({ account }) => account ?? []));
  return one.payer.kind === other.payer.kind && accounts.size < 2;
}

/** Transcript to begin with. `at`: last message that belongs to this session, if not all do. `isNew`: nothing was said yet. */
export const Origin = z.object({
  transcriptId: z.string(),
  at: z.string().exactOptional(),
  isNew: z.boolean().exactOptional(),
});
export type Origin = z.infer<typeof Origin>;
