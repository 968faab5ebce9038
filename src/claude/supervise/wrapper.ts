/**
 * A command as the operator has it started: behind words of his own that take it for their arguments, such as those that
 * change the user, the namespace or the machine.
 */
export function through(
  wrapper: readonly string[],
  command: string,
  args: readonly string[],
): [command: string, args: string[]] {
  const [first, ...others] = wrapper;
  return first === undefined ? [command, [...args]] : [first, [...others, command, ...args]];
}
