import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { AppError } from "../domain/error.ts";
import type { Pinned } from "./pinned.ts";

/** Faults of npm during an installation, each with the command that fixes the fault. */

/** `code` is an error code of npm or of the system. */
export interface Fault {
  readonly code: string;
  readonly text: string;
}

export const NPM_MISSING: Fault = { code: "ENPM", text: "there is no npm in PATH, nor beside Node" };

/** Thrown if a required package cannot be installed. */
export class InstallError extends AppError {
  /** Shell command that fixes the fault. */
  readonly fix: string;

  constructor({ name, version }: Pick<Pinned, "name" | "version">, folder: string, fault: Fault) {
    const [why, fix] = adviceFor(fault, folder);
    super("INTERNAL", `${name} ${version} is not installed yet, and cannot be: ${why}. Run: ${fix}`);
    this.fix = fix;
  }
}

/** Resets npm from a mirror to the default registry. */
const OWN_REGISTRY = "npm config delete registry";

/**
 * Returns the command that installs missing packages and reports faults. Names this program by path, because the program need
 * not be in `PATH`, and the registry may have another package of that name. After a start by `npx` uses `npx` again, because
 * the folder of `script` may be gone by then.
 */
export function retryCommand(script = process.argv[1] ?? ""): string {
  return `${/[\\/]_npx[\\/]/.test(script) ? "npx -y claude-agents-mcp" : `node ${shellQuoted(script)}`} doctor --fix`;
}

const UNREACHABLE = new Set([
  "ENOTFOUND",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_SOCKET_TIMEOUT",
  "ERR_SOCKET_CLOSED",
  "ENOTCACHED",
]);

const UNTRUSTED = /CERT|ISSUER|^ERR_TLS|^ERR_SSL|^EPROTO$/;

function adviceFor({ code, text }: Fault, folder: string): [why: string, fix: string] {
  if (code === "ENPM") return [text, npmInstallCommand()];
  if (code === "EINTEGRITY") {
    const why = "the registry has sent a package other than the one tested with this release (wrong integrity)";
    return [`${why}. Ask npm's own`, OWN_REGISTRY];
  }
  if (code === "E407" || /\b407\b|proxy authentication/i.test(text)) {
    const why = "the proxy wants a name and a password";
    return [why, "npm config set https-proxy http://NAME:PASSWORD@PROXY:PORT"];
  }
  if (code === "E401" || code === "E403" || code === "ENEEDAUTH") {
    return [`the registry or a proxy refuses it (${code})`, "npm login"];
  }
  if (code === "E404" || code === "ETARGET") {
    return [`the registry does not have it (${code}). Ask npm's own`, OWN_REGISTRY];
  }
  if (UNTRUSTED.test(code)) {
    return [`the certificate of the registry or of a proxy is not trusted (${code})`, "npm config set cafile FILE.pem"];
  }
  if (UNREACHABLE.has(code)) {
    const why = `npm does not reach the registry (${code}). Connect to the network; behind a proxy, set npm's https-proxy`;
    return [why, retryCommand()];
  }
  return diskAdvice(code, folder) ?? [`npm says: ${text}`, retryCommand()];
}

function diskAdvice(code: string, folder: string): [string, string] | undefined {
  const word = shellQuoted(folder);
  if (code === "ENOSPC" || code === "EDQUOT") return [`the disk of ${folder} is full`, "npm cache clean --force"];
  if (code === "EROFS") return [`${folder} is on a read-only disk`, "export XDG_CACHE_HOME=FOLDER_THAT_CAN_BE_WRITTEN"];
  if (code === "EACCES" || code === "EPERM") {
    const uid = process.geteuid?.();
    const why = `${folder} cannot be written (${code})`;
    if (uid === undefined) return [why, retryCommand()];
    return [why, `sudo mkdir -p ${word} && sudo chown -R ${String(uid)} ${word} && chmod -R u+rwX ${word}`];
  }
  if (code === "ENOTDIR" || code === "EEXIST") {
    const file = nearestExisting(folder);
    return [`${file} is not a folder`, `mv ${shellQuoted(file)} ${shellQuoted(file)}.old`];
  }
  return undefined;
}

/** Returns `folder`, or the nearest existing ancestor. */
export function nearestExisting(folder: string): string {
  return existsSync(folder) || folder === dirname(folder) ? folder : nearestExisting(dirname(folder));
}

/** Quotes a word for the shell. */
function shellQuoted(word: string): string {
  return process.platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** Returns the command that installs npm. Node's own installers include npm; system packages often do not. */
function npmInstallCommand(): string {
  if (process.platform === "win32") return "winget install OpenJS.NodeJS.LTS";
  if (process.platform === "darwin") return "brew install node";
  const managers = [
    ["/etc/debian_version", "sudo apt-get install -y npm"],
    ["/etc/alpine-release", "sudo apk add npm"],
    ["/etc/arch-release", "sudo pacman -S npm"],
  ] as const;
  return managers.find(([file]) => existsSync(file))?.[1] ?? "sudo dnf install -y nodejs-npm";
}
