import { createInterface } from "node:readline/promises";

/** True if there is a terminal to ask on. */
export function hasTerminal(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks on the terminal. Anything but yes counts as no, including a closed terminal and Control-C. */
export async function isConfirmed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const left = new Promise<undefined>((resolve) => {
    terminal.once("close", () => resolve(undefined));
  });
  const answer = await Promise.race([terminal.question(`${question} [y/N] `), left]);
  if (answer === undefined) process.stderr.write("\n");
  terminal.close();
  return /^y(?:es)?$/i.test((answer ?? "").trim());
}
