/** Variables without effect on the programs to run. */

/** True for a variable that no program reads: in lower case, except names that zsh and npm use. */
export function isOwnVariable(name: string): boolean {
  return /^[a-z][a-z0-9_]*$/.test(name) && !/path|prompt|proxy|npm|argv|options|commands|aliases|functions/.test(name);
}

const HARMLESS =
  /^(?:CI|COLUMNS|DEBUG|FORCE_COLOR|HOST|LANG|LC_[A-Z]+|LINES|LOG_LEVEL|NODE_ENV|NO_COLOR|PORT|RUST_BACKTRACE|RUST_LOG|TERM|TZ|VERBOSE)$/;

/** True for a variable from which no known program takes the name of another one. */
export function isHarmlessVariable(name: string): boolean {
  return HARMLESS.test(name);
}

/** Word of a command as the shell passes it on; `undefined` if known only at run time, or possibly several words. */
export type ShellWord = string | undefined;

/** Words of a command, the program first. */
export type ShellCommand = readonly ShellWord[];

/** Commands of a command line, or the reason why they are unknown. */
export interface CommandReading {
  /** Every simple command, each program by its bare name, and the commands that known runners run in turn. */
  readonly commands: readonly ShellCommand[];
  /** Reason why more may run than `commands`; `undefined` if nothing else does. */
  readonly problem?: string | undefined;
}
