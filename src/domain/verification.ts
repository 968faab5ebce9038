import { z } from "zod";

/** Verification: commands that the server runs when a turn is done. */

/** Maximum number of commands, and of bytes in each. */
const [MAX_COMMANDS, MAX_COMMAND_BYTES] = [8, 4_096];

const Command = z
  .string()
  .refine((text) => text.trim() !== "", "must not be empty")
  .refine(
    (text) => new TextEncoder().encode(text).length <= MAX_COMMAND_BYTES,
    `must be at most ${String(MAX_COMMAND_BYTES)} bytes`,
  );
const Commands = z.array(Command).min(1).max(MAX_COMMANDS);

/** Default of `attempts`, and of `timeoutMs` for each command. */
const [ATTEMPTS, TIMEOUT_MS] = [1, 600_000];

/** Commands to verify a turn with. */
export const Verify = z.strictObject({
  commands: Commands,
  /** Repairs that Claude Code may try after the first red run. */
  attempts: z.number().int().min(0).max(5),
  /** Time limit of one run of all commands, ms. */
  timeoutMs: z.number().int().min(1_000).max(86_400_000),
  /** True if turns that Claude Code begins by itself are verified too. Only in the operator's default. */
  ownTurns: z.boolean().exactOptional(),
});
export type Verify = z.infer<typeof Verify>;

/** Forms that callers may write: a list of commands, or an object. */
export const VerifyOption = z.union([
  Commands,
  z.strictObject({
    commands: Commands,
    attempts: Verify.shape.attempts.exactOptional(),
    timeoutMs: Verify.shape.timeoutMs.exactOptional(),
  }),
]);
export type VerifyOption = z.infer<typeof VerifyOption>;

/** Adds the defaults to an option. */
export function verifyOf(option: VerifyOption | Verify): Verify {
  if (Array.isArray(option)) return { commands: option, attempts: ATTEMPTS, timeoutMs: TIMEOUT_MS };
  return { attempts: ATTEMPTS, timeoutMs: TIMEOUT_MS, ...option };
}

/** Name of the tool in a permission request for the commands; its input is `{commands}`. */
export const VERIFICATION_TOOL = "Verification";

/** Result of one command. */
export const VerifiedCommand = z.object({
  command: z.string(),
  /** Exit code; `null` after a signal, or if the command was not started. */
  exit: z.number().int().nullable(),
  signal: z.string().exactOptional(),
  ms: z.number(),
  /** End of stdout and stderr, at most 2 KiB, masked. */
  tail: z.string(),
});
export type VerifiedCommand = z.infer<typeof VerifiedCommand>;

/**
 * - `denied`: an approver, a rule or the permission mode did not allow the commands.
 * - `refused`: the commands cannot be run here, for the reason in `message`.
 * - `lost`: the commands could not be run or followed to their end.
 */
export const VerificationStatus = z.enum(["passed", "failed", "denied", "refused", "interrupted", "timeout", "lost"]);
export type VerificationStatus = z.infer<typeof VerificationStatus>;

export const Verification = z.object({
  status: VerificationStatus,
  /** Number of runs so far, and the most that there can be. */
  attempts: z.number().int(),
  of: z.number().int(),
  /** Commands of the last run, up to the first red command. */
  commands: z.array(VerifiedCommand),
  message: z.string().exactOptional(),
});
export type Verification = z.infer<typeof Verification>;
