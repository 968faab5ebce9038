import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { PRODUCT } from "../../domain/names.ts";
import { connectionProblem, errorLine, exitOf, HostProblem, noiseProblem } from "./run-ssh.ts";

/** Starts the server of an entry once, as a client does. */

const OPENING = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: `${PRODUCT} install`, version: "1" } },
};

const Answer = z.object({
  id: z.literal(OPENING.id),
  result: z.object({ serverInfo: z.object({ version: z.string() }) }).optional(),
  error: z.object({ message: z.string() }).optional(),
});

/** Time limit, ms. */
const TRIAL_MS = 30_000;

/** Sends `initialize` to the server that `ssh` starts with `args`; resolves to its version. Throws HostProblem. */
export async function tryServer(ssh: string, args: readonly string[], target: string): Promise<string> {
  const child = spawn(ssh, args, { stdio: "pipe", windowsHide: true });
  const stderr = text(child.stderr);
  const closed = exitOf(child);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, TRIAL_MS);
  try {
    child.stdin.on("error", () => undefined).write(`${JSON.stringify(OPENING)}\n`);
    for await (const line of createInterface({ input: child.stdout })) {
      const version = readAnswer(line, target);
      if (version !== undefined) return version;
    }
    const code = await closed;
    const output = { code, stderr: await stderr, isLate };
    const ended = `the server on ${target} ended at once (exit code ${String(code)}): ${errorLine(output.stderr)}`;
    throw new HostProblem(connectionProblem(target, output) ?? ended);
  } finally {
    child.stdin.end();
    clearTimeout(timer);
    child.kill();
    await closed.catch(() => undefined);
  }
}

/** Returns the version in the answer; `undefined` for another message of the server. Throws HostProblem. */
function readAnswer(line: string, target: string): string | undefined {
  const { data: message } = z.looseObject({ jsonrpc: z.string() }).safeParse(parsed(line));
  if (message === undefined) throw new HostProblem(noiseProblem(target, line));
  const { data: answer } = Answer.safeParse(message);
  if (answer?.error) throw new HostProblem(`the server on ${target} refused to start: ${answer.error.message}`);
  return answer?.result?.serverInfo.version;
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
