import { z } from "zod";

/** Receipt of a turn: what the server saw in the folders and in the log, without any word of Claude. */

/** State of one folder at one time. Paths are relative to `path`, with `/` between names. */
export const FolderState = z.object({
  /** Real path of the folder. */
  path: z.string(),
  /** `git`: work tree of a repository. `files`: folder outside git. `unseen`: not looked at, for the reason in `why`. */
  kind: z.enum(["git", "files", "unseen"]),
  why: z.string().exactOptional(),
  /** Commit of `HEAD`; absent before the first commit. */
  head: z.string().exactOptional(),
  branch: z.string().exactOptional(),
  /**
   * Stamps (mode, size, times, inode, digest) by path: of dirty and untracked files in a work tree. Absent in a folder outside
   * git, whose stamps only the server that looked keeps, in memory.
   */
  files: z.record(z.string(), z.string()).exactOptional(),
  /** Digest of all stamps of a folder outside git, by which the server that looked finds them again. */
  stamps: z.string().exactOptional(),
  /** Digests of git's configuration and hooks, by path in the git folder. */
  gitFiles: z.record(z.string(), z.string()).exactOptional(),
});
export type FolderState = z.infer<typeof FolderState>;

/** State of all folders of a session: its own, additional ones, and the worktrees of its subagents. */
export const Snapshot = z.object({ folders: z.array(FolderState) });
export type Snapshot = z.infer<typeof Snapshot>;

/** Changes of tests in one file: numbers of declarations. */
export const TestChanges = z.object({
  /** Test files deleted. */
  deleted: z.number().int().exactOptional(),
  /** Test files that had tests and have none any more. */
  emptied: z.number().int().exactOptional(),
  /** Test declarations removed from files that remain. */
  removed: z.number().int().exactOptional(),
  /** Marks added that skip a test (`skip`, `todo`, `xit`, `@Ignore`, ...). */
  skipped: z.number().int().exactOptional(),
  /** Marks added that exclude all other tests (`only`, `fit`, ...). */
  only: z.number().int().exactOptional(),
});
export type TestChanges = z.infer<typeof TestChanges>;

/** Change of one file. `path` is relative to the session's folder, absolute if outside. */
export const FileChange = z.object({
  path: z.string(),
  change: z.enum(["added", "changed", "deleted", "renamed"]),
  /** Former path of a renamed file. */
  from: z.string().exactOptional(),
  /** Lines added and removed; absent for a file without known lines (binary, link, too large, old content unknown). */
  lines: z.tuple([z.number().int(), z.number().int()]).exactOptional(),
  tests: TestChanges.exactOptional(),
  /** Sources that saw the change: `tree`, and the names of tools whose results report it. */
  by: z.array(z.string()),
});
export type FileChange = z.infer<typeof FileChange>;

export const Commit = z.object({ hash: z.string(), subject: z.string() });
export type Commit = z.infer<typeof Commit>;

/** Comparison of a session's folders between two times. */
export const Comparison = z.object({
  /** `tools` if the tree could not be compared, so that only results of tools tell of changes. */
  by: z.enum(["tree", "tools"]),
  /** False if changes can have been missed, for the reasons in `notSeen`. */
  complete: z.boolean(),
  /** Heads of each work tree before and after. */
  folders: z.array(
    z.object({
      path: z.string(),
      kind: FolderState.shape.kind,
      headBefore: z.string().exactOptional(),
      headAfter: z.string().exactOptional(),
      branchBefore: z.string().exactOptional(),
      branchAfter: z.string().exactOptional(),
    }),
  ),
  files: z.array(FileChange),
  commits: z.array(Commit),
  /** Changed files of git's configuration and hooks. */
  gitFiles: z.array(z.string()),
  /** Sentences: what could not be seen, and why. */
  notSeen: z.array(z.string()),
  /** Files that tools report as changed and that the tree cannot show: ignored by git, in a skipped folder. As reported. */
  outOfSight: z.array(z.string()).exactOptional(),
  /** Real path of the session's folder, if known. */
  own: z.string().exactOptional(),
  after: Snapshot,
});
export type Comparison = z.infer<typeof Comparison>;

/** Totals that a test runner reports. */
const Totals = {
  passed: z.number().int().exactOptional(),
  failed: z.number().int().exactOptional(),
  skipped: z.number().int().exactOptional(),
};

/** Command that a tool ran. Event `eventId` holds the call. */
export const CommandRun = z.object({
  eventId: z.number().int(),
  /** Text of the command, at most 200 characters. */
  command: z.string(),
  /** Exit code of a plain command; `unknown` for anything else (a pipe, `|| true`, background, no result). */
  exit: z.union([z.number().int(), z.literal("unknown")]),
  /** Kind of check, by the program: a runner of tests, a linter, a type checker, a build. */
  check: z.enum(["test", "lint", "type", "build"]).exactOptional(),
  ...Totals,
});
export type CommandRun = z.infer<typeof CommandRun>;

/** Numbers of all entries of a receipt. */
export const ReceiptCounts = z.object({
  added: z.number().int(),
  changed: z.number().int(),
  deleted: z.number().int(),
  renamed: z.number().int(),
  /** Lines added and removed in files with known lines. */
  lines: z.tuple([z.number().int(), z.number().int()]),
  tests: TestChanges,
  /** Commands run, those with an exit code other than 0, and those without a known one. */
  ran: z.number().int(),
  failed: z.number().int(),
  unknown: z.number().int(),
});
export type ReceiptCounts = z.infer<typeof ReceiptCounts>;

export const Receipt = z.object({
  /** Number of the turn in its session, from 1. */
  turn: z.number().int(),
  ...Comparison.omit({ after: true, outOfSight: true, own: true }).shape,
  /** Changes outside the session's folders that tools reported. Absolute paths. */
  outside: z.array(z.string()),
  commands: z.array(CommandRun),
  /** Permission requests of the turn, with who answered. */
  requests: z.array(
    z.object({
      eventId: z.number().int(),
      toolName: z.string(),
      behavior: z.enum(["allow", "deny"]),
      by: z.string(),
    }),
  ),
  /** Number of tool uses denied: by an approver, a rule, or Claude Code itself. */
  denied: z.number().int(),
  /** Number of background tasks that still run. */
  background: z.number().int(),
  /** Number of other sessions that worked in the folder during the turn. */
  others: z.number().int(),
  /** Number of files changed between the last turn and this one. */
  between: z.number().int(),
  /** Number of entries left out of the lists, because the receipt is bounded. */
  leftOut: z.number().int(),
  /** Numbers including the entries left out; absent if there are none. */
  counts: ReceiptCounts.exactOptional(),
});
export type Receipt = z.infer<typeof Receipt>;

export function countsOf({ commands, counts, files }: Pick<Receipt, "commands" | "counts" | "files">): ReceiptCounts {
  return counts ?? { ...countFiles(files), ...countCommands(commands) };
}

export function countFiles(files: readonly FileChange[]): Omit<ReceiptCounts, "failed" | "ran" | "unknown"> {
  const of = (change: FileChange["change"]) => files.filter((file) => file.change === change).length;
  const sum = (at: 0 | 1) => files.reduce((total, { lines }) => total + (lines?.[at] ?? 0), 0);
  const tests: TestChanges = {};
  for (const key of TestChanges.keyof().options) {
    const total = files.reduce((count, file) => count + (file.tests?.[key] ?? 0), 0);
    if (total > 0) tests[key] = total;
  }
  const changes = { added: of("added"), changed: of("changed"), deleted: of("deleted"), renamed: of("renamed") };
  return { ...changes, lines: [sum(0), sum(1)], tests };
}

function countCommands(commands: readonly CommandRun[]): Pick<ReceiptCounts, "failed" | "ran" | "unknown"> {
  const unknown = commands.filter(({ exit }) => exit === "unknown").length;
  const succeeded = commands.filter(({ exit }) => exit === 0).length;
  return { ran: commands.length, failed: commands.length - unknown - succeeded, unknown };
}
