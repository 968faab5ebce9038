/** Reads the command line of a script. `--help` prints the usage. Reports a wrong argument with the usage, and exits with 1. */
import { parseArgs } from "node:util";

/**
 * Returns the result of `parseArgs`, `numberOf(name)` to read an option as a whole number from 1, and `refuse(problem)` for
 * values that only the script can check.
 */
export function readArguments(usage, { allowPositionals = false, options = {} } = {}) {
  const refuse = (problem) => {
    console.error(`${problem}\n\n${usage}`);
    process.exit(1);
  };
  const { positionals, values } = parsed({ allowPositionals, options }, refuse);
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const numberOf = (name) => {
    const number = Number(values[name]);
    if (!Number.isInteger(number) || number < 1)
      refuse(`--${name} is "${values[name]}": must be a whole number from 1.`);
    return number;
  };
  return { numberOf, positionals, refuse, values };
}

function parsed({ allowPositionals, options }, refuse) {
  try {
    return parseArgs({ allowPositionals, options: { help: { type: "boolean", short: "h" }, ...options } });
  } catch (error) {
    // Drops the advice on positional arguments that begin with a hyphen.
    const [problem] = error.message.split(". To specify ");
    return refuse(`${problem}.`);
  }
}
