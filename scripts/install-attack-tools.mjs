// Finds the programs that test/attacks needs beside Node, and installs missing ones on Debian.
// vitest calls setup() before the project "slow".
import { existsSync } from "node:fs";
import { install, succeeds } from "./debian.mjs";

/** Test for presence of the program, by Debian package. */
const NEEDED = {
  // Claude Code's sandbox on Linux, and a pid namespace for each session.
  bubblewrap: () => succeeds("bwrap", ["--version"]),
  socat: () => succeeds("socat", ["-V"]),
  // Settable clock for a process: https://github.com/wolfcw/libfaketime
  libfaketime: () => ["x86_64", "aarch64"].some((cpu) => existsSync(`/usr/lib/${cpu}-linux-gnu/faketime`)),
};

export function setup() {
  if (process.platform !== "linux") return;
  const packages = Object.entries(NEEDED).flatMap(([name, isThere]) => (isThere() ? [] : [name]));
  if (packages.length === 0) return;
  const what = packages.join(", ");
  install({
    packages,
    size: "2 MB",
    what,
    whatToDo: `Install it by hand (Debian: apt-get install ${packages.join(" ")}).`,
  });
}
