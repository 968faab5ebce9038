import { spawn } from "node:child_process";
import { escapeControlChars } from "../control-chars.ts";
import { hasPipe } from "../descriptors.ts";
import { otherwise, stat } from "../files/limited.ts";
import { killAtExit, killNow } from "../kill-at-exit.ts";

/** Runs one command of git within limits of time and size, and finds the reason of a failure. */

/** Error whose message is a reason in git's own words, without a full stop. */
export class GitError extends Error {
  override readonly name = "GitError";
  /** Beginning of the output if git wrote more than `mostBytes`. */
  readonly beginning: Buffer | undefined;

  constructor(reason: string, beginning?: Buffer) {
    super(reason);
    this.beginning = beginning;
  }
}

/** Returns a sentence that gives `error` as the reason. */
export function unreadableText(error: unknown): string {
  return `git cannot read the repository: ${error instanceof Error ? error.message : String(error)}.`;
}

/** Default of `mostBytes`. */
const MAX_BYTES = 1024 * 1024;
const MAX_REASON_BYTES = 4096;

interface Run {
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly limitMs: number;
  /** Whole `stdin`. Default: "". */
  readonly input?: string | Buffer;
  /** Maximum size of git's stdout. */
  readonly mostBytes?: number | undefined;
}

/** Runs the command in a process group, so that `limitMs` also kills children of git. */
export async function run(
  [command = "git", ...args]: readonly string[],
  { cwd, env, input, limitMs, mostBytes = MAX_BYTES }: Run,
): Promise<Buffer> {
  // `spawn` in a folder that does not answer would block this whole process.
  await stat(cwd).catch(otherwise(undefined));
  return new Promise((resolvePromise, reject) => {
    const isWindows = process.platform === "win32";
    const child = spawn(command, args, {
      cwd,
      env,
      detached: !isWindows,
      stdio: ["pipe", "pipe", "pipe"],
    });
    killAtExit(child, !isWindows);
    const chunks: Buffer[] = [];
    let bytes = 0;
    let stderr = "";
    const end = (error: GitError) => {
      killNow(child, !isWindows);
      child.stdout.destroy();
      child.stderr.destroy();
      reject(error);
    };
    const timer = setTimeout(() => {
      end(new GitError(`no answer within ${String(limitMs)} ms`));
    }, limitMs);
    child.on("error", (error) => {
      clearTimeout(timer);
      reject(new GitError(error.message));
    });
    // Node makes no pipe without free descriptors; the `error` event comes next.
    if (![child.stdin, child.stdout, child.stderr].every(hasPipe)) return;
    // git may end before it has read everything.
    child.stdin.on("error", () => undefined).end(input);
    child.stderr.on("data", (chunk: Buffer) => {
      if (stderr.length < MAX_REASON_BYTES) stderr += chunk.toString();
    });
    child.stdout.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      chunks.push(chunk);
      if (bytes <= mostBytes) return;
      end(new GitError(`more than ${String(mostBytes)} bytes of output`, Buffer.concat(chunks).subarray(0, mostBytes)));
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (code === 0) resolvePromise(Buffer.concat(chunks));
      else reject(new GitError(reasonIn(stderr) ?? `the command ended with ${String(code ?? signal)}`));
    });
  });
}

const MAX_REASON_CHARACTERS = 600;

/**
 * Finds the reason of a failure in git's stderr. Returns the lines from the first error on as one line without a full stop;
 * `undefined` if git wrote none.
 */
function reasonIn(stderr: string): string | undefined {
  const lines = stderr
    .split(/\r?\n/)
    .map((line) => escapeControlChars(line.replaceAll("\t", " ")).trim())
    .filter((line) => line !== "" && !/^(?:hint|warning):/.test(line));
  const first = lines.findIndex((line) => FAULT_PREFIX.test(line));
  const reason = lines
    .slice(Math.max(first, 0))
    .map((line) => line.replace(FAULT_PREFIX, ""))
    .join(" ")
    .replace(CONFIG_VALUE, "$1$2")
    .replace(/\.$/, "");
  return reason === "" ? undefined : Array.from(reason).slice(0, MAX_REASON_CHARACTERS).join("");
}

const FAULT_PREFIX = /^(?:fatal|error): /;
/**
 * Values of settings in git's errors, removed from reasons: a repository may include any file as its configuration, even a file
 * that its reader may not see.
 */
const CONFIG_VALUE =
  /(config value) '(?:.*'(?= for ')|.*)|(color value|hint type|hunk header|object creation|--ignore-submodules argument)(?: for '.*')?: .*/;
