// Finds the OpenSSH server and client that test/machines needs, and installs missing ones on Debian.
// vitest calls setup() before the project "machines".
import { existsSync } from "node:fs";
import { install, succeeds, WITHOUT_SERVICES, writeAsRoot } from "./debian.mjs";

/** Test for presence of the program, by Debian package. */
const NEEDED = {
  "openssh-client": () => succeeds("ssh", ["-V"]),
  "openssh-server": () => existsSync("/usr/sbin/sshd"),
};

export function setup() {
  if (process.platform !== "linux") return;
  const packages = Object.entries(NEEDED).flatMap(([name, isThere]) => (isThere() ? [] : [name]));
  if (packages.length === 0) return;
  install({
    packages,
    meanwhile: WITHOUT_SERVICES,
    size: "1 MB",
    what: "OpenSSH",
    whatToDo: `Install it by hand (Debian: apt-get install ${packages.join(" ")}).`,
  });
  // Debian's unit and init script then start no server with the machine either.
  if (packages.includes("openssh-server")) writeAsRoot("/etc/ssh/sshd_not_to_be_run", "Installed for tests only.\n");
}
