import { spawn, type ChildProcess } from "node:child_process";
import { hasPipe } from "../security/descriptors.ts";
import { ownPath } from "../security/find-program.ts";
import { signal } from "./supervise/tree.ts";

interface RunOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Time limit for the answer, ms. */
  readonly ms: number;
  /** Default: the folder of this process. */
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
const MOST_TEXT = 65_536;

/**
 * Returns the `stdout` of a Claude Code run with `words`; `problem` completes a sentence beginning with the path. Starts
 * scripts with Node, as the Agent SDK does. Never rejects, and takes no longer than `ms`: then kills the whole process group.
 */
export async function runClaude(
  path: string,
  words: readonly string[],
  question: RunOptions,
): Promise<Output | { readonly problem: string }> {
  const environment = { ...question.environment, ...(await ownPath(question.environment)) };
  return new Promise((resolve) => {
    const child = start(path, words, { ...question, environment });
    if (typeof child === "string") return resolve({ problem: `cannot be started: ${child}` });
    let text = "";
    const end = (answer: Output | { readonly problem: string }): void => {
      clearTimeout(timer);
      child.stdout?.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => {
      endGroup(child);
      end({ problem: `did not answer ${words.join(" ")} within ${String(question.ms / 1000)} s` });
    }, question.ms);
    child.stdin?.on("error", () => undefined).end(question.input);
    child.stdout?.setEncoding("utf8").on("data", (part: string) => (text = (text + part).slice(0, MOST_TEXT)));
    child.once("error", ({ message }) => end({ problem: `cannot be started: ${message}` }));
    child.once("close", (code) => end({ text, code }));
  });
}

function start(path: string, words: readonly string[], { cwd, environment, input }: RunOptions): ChildProcess | string {
  const [program, ...rest] = SCRIPT.test(path) ? [process.execPath, path, ...words] : [path, ...words];
  try {
    const child = spawn(program, rest, {
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
