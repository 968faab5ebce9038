/** A word of a command as the shell will hand it over; undefined where only running it tells, or where it may be several words. */
export type ShellWord = string | undefined;

/** The program first. */
export type ShellCommand = readonly ShellWord[];

/** What a command line runs, or why it cannot be told. */
export interface Reading {
  /** Every simple command in it, each program by its bare name, and what known runners of others run in their turn. */
  readonly commands: readonly ShellCommand[];
  /** Why more may run than `commands`; undefined where that is all. */
  readonly problem?: string | undefined;
}
