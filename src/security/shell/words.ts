/** Variables that change no program that is run. */

/** One that no program looks at: those in small letters, but for what zsh and npm take from them. */
export function isOwnVariable(name: string): boolean {
  return /^[a-z][a-z0-9_]*$/.test(name) && !/path|prompt|proxy|npm|argv|options|commands|aliases|functions/.test(name);
}

const HARMLESS =
  /^(?:CI|COLUMNS|DEBUG|FORCE_COLOR|HOST|LANG|LC_[A-Z]+|LINES|LOG_LEVEL|NODE_ENV|NO_COLOR|PORT|RUST_BACKTRACE|RUST_LOG|TERM|TZ|VERBOSE)$/;

/** No program that we know takes the name of another one from it. */
export function isHarmlessVariable(name: string): boolean {
  return HARMLESS.test(name);
}

/** A word of a command as the shell will hand it over; undefined where only running it tells, or where it may be several words. */
export type ShellWord = string | undefined;

/** The program first. */
export type ShellCommand = readonly ShellWord[];

/** The commands that a command line runs, or why they are unknown. */
export interface Reading {
  /** Every simple command in it, each program by its bare name, and what known runners of others run in their turn. */
  readonly commands: readonly ShellCommand[];
  /** Why more may run than `commands`; undefined where that is all. */
  readonly problem?: string | undefined;
}
