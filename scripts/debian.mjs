// Installs Debian packages that the tests need, if apt-get exists and may be used (as root, or by sudo without a password).
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

/** Returns true if the command exits with 0. Discards its output. */
export function succeeds(command, words) {
  return spawnSync(command, words, { stdio: "ignore" }).status === 0;
}

/**
 * Installs `packages`, which provide `what`; `size` is the size of the download. `meanwhile` has texts of files that change how
 * Debian installs; they exist only meanwhile. Returns the duration in seconds. Throws an Error with the failure and `whatToDo`.
 */
export function install({ meanwhile = {}, packages, size, what, whatToDo }) {
  const rights = rightsToInstall();
  if (!rights) throw new Error(`There is no ${what} on this machine. ${whatToDo}`);
  console.error(`No ${what} here: installing ${packages.join(" and ")} with apt-get, about ${size}.`);
  const began = Date.now();
  const apt = (...words) =>
    run(
      [...rights, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "DPkg::Lock::Timeout=120", ...words],
      { what, whatToDo },
    );
  apt("update");
  const files = Object.entries(meanwhile).filter(([path]) => !existsSync(path));
  try {
    for (const [path, text] of files) runAs(rights, WRITE, path, text);
    apt("install", "-y", "--no-install-recommends", ...packages);
  } finally {
    for (const [path] of files) runAs(rights, 'rm -f "$1"', path);
  }
  return Math.round((Date.now() - began) / 1000);
}

const WRITE = `mkdir -p "\${1%/*}" && cat >"$1" && chmod 755 "$1"`;

/** Writes a file as root. */
export function writeAsRoot(path, text) {
  runAs(rightsToInstall() ?? [], WRITE, path, text);
}

/** Runs a line of sh, in which `$1` is `path`, with `input`. */
function runAs(rights, line, path, input = "") {
  const [command, ...words] = [...rights, "sh", "-c", line, "sh", path];
  spawnSync(command, words, { stdio: ["pipe", "ignore", "inherit"], input });
}

/** Keeps packages from starting their services: https://wiki.debian.org/chroot#Configuration */
export const WITHOUT_SERVICES = { "/usr/sbin/policy-rc.d": "#!/bin/sh\nexit 101\n" };

/** Returns the command prefix that runs a command as root; `undefined` without apt-get or the right to use it. */
function rightsToInstall() {
  if (!succeeds("apt-get", ["--version"])) return undefined;
  if (process.getuid?.() === 0) return [];
  return succeeds("sudo", ["-n", "true"]) ? ["sudo", "-n"] : undefined;
}

function run([command, ...words], { what, whatToDo }) {
  const { error, status, stderr } = spawnSync(command, words, {
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  if (status === 0) return;
  const why = error ? String(error) : stderr.trim().split("\n").slice(-5).join("\n");
  throw new Error(`${what} could not be installed: ${[command, ...words].join(" ")} failed.\n${why}\n${whatToDo}`);
}
