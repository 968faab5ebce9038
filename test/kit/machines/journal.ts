import { existsSync, readFileSync } from "node:fs";
import type { Script } from "../../../src/demo/model/script.ts";

/** Tool calls that write into a file of all machines while they run. */

interface Line {
  readonly call: string;
  /** Pid namespace of the machine. */
  readonly machine: string;
  readonly pid: string;
  /** Time, ms since the epoch. */
  readonly at: number;
}

/** Returns a step of a script whose command writes a line each 50 ms, `lines` times. */
export function writing(file: string, call: string, lines: number): Script[number] {
  const line = `echo "${call} $(readlink /proc/self/ns/pid) $$ $(date +%s%3N)" >> ${file}`;
  const command = `for n in $(seq ${String(lines)}); do ${line}; sleep 0.05; done`;
  return { tools: [{ name: "Bash", input: { command } }] };
}

export function journal(file: string): Line[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [call = "", machine = "", pid = "", at] = line.split(" ");
      return { call, machine, pid, at: Number(at) };
    });
}

/** Commands in order of their first line. */
function commandsOf(lines: readonly Line[]) {
  const found = new Map<string, Line & { from: number; to: number }>();
  for (const line of lines) {
    const id = [line.call, line.machine, line.pid].join(" ");
    found.set(id, { ...line, from: found.get(id)?.from ?? line.at, to: line.at });
  }
  return [...found.values()];
}

/** Returns the calls that more than one command has run. */
export function repeated(lines: readonly Line[]): string[] {
  const calls = commandsOf(lines).map(({ call }) => call);
  return calls.filter((call, at) => calls.indexOf(call) !== at);
}

/** Longest time for which commands on two machines ran at once, ms; 0 or less if none did. */
export function overlapMs(lines: readonly Line[]): number {
  const commands = commandsOf(lines);
  const pairs = commands.flatMap((one, at) => commands.slice(at + 1).map((other) => [one, other] as const));
  const apart = pairs.filter(([one, other]) => one.machine !== other.machine);
  return Math.max(0, ...apart.map(([one, other]) => Math.min(one.to, other.to) - Math.max(one.from, other.from)));
}
