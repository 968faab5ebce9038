import { setTimeout as sleep } from "node:timers/promises";
import type { VerifiedCommand } from "../../domain/verification.ts";
import type { CheckOutcome } from "../../engine/ports.ts";
import type { Spawner } from "../supervise/spawn.ts";
import { OutputTail } from "./output-tail.ts";

/** Time limit for the end of a killed command, and for the end of its output after that, ms. */
const [GONE_WITHIN_MS, CLOSED_WITHIN_MS] = [5_000, 500];

/** Everything that the commands of a run have in common. */
export interface RunContext {
  readonly cwd: string;
  readonly environment: Record<string, string>;
  readonly wrapper: readonly string[];
  readonly shell: string;
}

interface Supervision {
  readonly spawner: Pick<Spawner, "spawnHere">;
  readonly processTag: string;
  readonly mask: (text: string) => string;
  readonly ending: Ending;
}

/** Order to end a run early. The first cause counts. */
export class Ending {
  #cause: "stopped" | "timeout" | undefined;
  #tell: (value: undefined) => void = () => undefined;
  /** Resolves with the order. */
  readonly ordered = new Promise<undefined>((resolve) => {
    this.#tell = resolve;
  });

  cause(): "stopped" | "timeout" | undefined {
    return this.#cause;
  }

  end(cause: "stopped" | "timeout"): void {
    this.#cause ??= cause;
    this.#tell(undefined);
  }
}

/** Runs the commands in order, until the first red one or the order to end. Rejects if `prepared` does. */
export async function runCommands(
  prepared: Promise<RunContext>,
  commands: readonly string[],
  supervision: Supervision,
): Promise<CheckOutcome> {
  const { ending, mask } = supervision;
  const done: VerifiedCommand[] = [];
  const context = await Promise.race([prepared, ending.ordered]);
  for (const command of commands) {
    if (!context || ending.cause()) break;
    const { problem, result } = await runCommand(command, context, supervision).catch(notStarted(command));
    done.push(result);
    if (problem !== undefined && ending.cause() !== "stopped")
      return { status: "lost", commands: done, message: mask(problem) };
    if (!ending.cause() && result.exit !== 0) return { status: "failed", commands: done };
  }
  return { status: ending.cause() ?? "passed", commands: done };
}

interface Run {
  readonly result: VerifiedCommand;
  /** Reason why the command was not run to its end. */
  readonly problem?: string | undefined;
}

function notStarted(command: string): (error: unknown) => Run {
  return (error) => ({
    result: { command, exit: null, ms: 0, tail: "" },
    problem: error instanceof Error ? error.message : String(error),
  });
}

/** Runs one command, and resolves once its processes are gone. */
async function runCommand(
  command: string,
  { cwd, environment, shell, wrapper }: RunContext,
  { ending, mask, processTag, spawner }: Supervision,
): Promise<Run> {
  const startedAt = performance.now();
  const request = { command: shell, args: ["-c", command], cwd, env: environment };
  const { child, exit, gone, kill } = spawner.spawnHere(request, { name: processTag, wrapper });
  const output = new OutputTail();
  const streams = [child.stdout, child.stderr];
  for (const stream of streams) output.read(stream);
  const closed = new Promise((resolve) => child.once("close", resolve));
  let isGone = false;
  void gone.then(() => (isGone = true));
  const killed = ending.ordered.then(async () => {
    // The order may come during a later command.
    if (isGone) return undefined;
    kill();
    return sleep(GONE_WITHIN_MS, undefined, { ref: false });
  });
  const ended = await Promise.race([gone.then(async () => exit), killed]);
  await Promise.race([closed, sleep(CLOSED_WITHIN_MS, undefined, { ref: false })]);
  // A process that could not be ended may hold the pipes.
  for (const stream of streams) stream.destroy();
  const { code = null, error, signal } = ended ?? {};
  const ms = Math.round(performance.now() - startedAt);
  return {
    result: { command, exit: code, ...(signal && { signal }), ms, tail: output.text(mask) },
    problem: ended ? error && `The command could not be started: ${error.message}.` : NOT_ENDED,
  };
}

const NOT_ENDED = "The command was killed, but one of its processes has not ended. End it by hand.";
