import { spawn, type ChildProcess } from "node:child_process";
import { hasPipe } from "../security/descriptors.ts";
import { ownPath } from "../security/find-program.ts";
import { signal } from "./supervise/tree.ts";

interface RunOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Time limit for the answer, ms. */
  readonly ms: number;
  /** Default: the working folder of this process. */
  readonly cwd?: string;
  /** Whole text of `stdin`. Default: "". */
  readonly input?: string;
}

/** `code` is `null` if a signal ended the process. */
interface Output {
  readonly text: string;
  readonly code: number | null;
}

const SCRIPT = /\.[cm]?[jt]s$/;
const MAX_TEXT = 65_536;

/**
 * Runs Claude Code with `args` and returns its `stdout`, or a `problem` that completes a sentence beginning with the path.
 * Starts scripts with Node, as the Agent SDK does. Never rejects. After `ms` kills the whole process group.
 */
export async function runClaude(
  path: string,
  args: readonly string[],
  options: RunOptions,
): Promise<Output | { readonly problem: string }> {
  const environment = { ...options.environment, ...(await ownPath(options.environment)) };
  return new Promise((resolve) => {
    const child = start(path, args, { ...options, environment });
    if (typeof child === "string") return resolve({ problem: `cannot be started: ${child}` });
    let text = "";
    const end = (answer: Output | { readonly problem: string }): void => {
      clearTimeout(timer);
      child.stdout?.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => {
      endGroup(child);
      end({ problem: `did not answer ${args.join(" ")} within ${String(options.ms / 1000)} s` });
    }, options.ms);
    child.stdin?.on("error", () => undefined).end(options.input);
    child.stdout?.setEncoding("utf8").on("data", (part: string) => (text = (text + part).slice(0, MAX_TEXT)));
    child.once("error", ({ message }) => end({ problem: `cannot be started: ${message}` }));
    child.once("close", (code) => end({ text, code }));
  });
}

function start(path: string, args: readonly string[], { cwd, environment, input }: RunOptions): ChildProcess | string {
  const [program, ...programArgs] = SCRIPT.test(path) ? [process.execPath, path, ...args] : [path, ...args];
  try {
    const child = spawn(program, programArgs, {
      cwd,
      env: environment,
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "ignore"],
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    return hasPipe(child.stdout) ? child : "this process has no file descriptor left";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) signal(process.platform === "win32" ? pid : -pid, "SIGKILL");
}
