import { spawn, type ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { hasPipe, outOfDescriptorsText } from "../../security/descriptors.ts";
import type { ProcessTag } from "./process-tag.ts";
import { wrapCommand } from "./isolation.ts";
import { whenDead } from "./tree.ts";

/**
 * Ends our processes when this server dies in a way that lets it end nothing: SIGKILL, a crash, a power cut of the
 * client. The reaper is a small process of its own that holds the other end of a pipe; when the pipe closes it ends
 * the processes that were registered, and their descendants.
 */
export class Reaper {
  readonly #prlimit: string | undefined;
  #child: ChildProcess | undefined;
  /** Registrations to repeat to a reaper that replaces a dead one. */
  readonly #watched = new Map<number, string>();

  constructor(prlimit: string | undefined) {
    this.#prlimit = prlimit;
  }

  /** Throws if it cannot be started: no process may start that could not be ended. */
  ready(): void {
    this.#child ??= this.#start();
  }

  watch(pid: number, tag: ProcessTag): void {
    this.ready();
    const line = `+${String(pid)} ${tag.number ?? ""} ${tag.value}\n`;
    this.#watched.set(pid, line);
    this.#send(line);
  }

  forget(pid: number): void {
    this.#watched.delete(pid);
    this.#send(`-${String(pid)}\n`);
  }

  #send(line: string): void {
    this.#child?.stdin?.write(line);
  }

  #start(): ChildProcess {
    const { args, command } = reaperProgram(this.#prlimit);
    // Detached: a Ctrl-C in the client's terminal must not take the reaper before us.
    const child = spawn(command, args, { stdio: ["pipe", "ignore", "ignore"], detached: true, env: {} });
    child.on("error", () => undefined);
    if (!hasPipe(child.stdin)) throw new Error(outOfDescriptorsText());
    child.stdin.on("error", () => undefined);
    for (const line of this.#watched.values()) child.stdin.write(line);
    whenDead(child, (restart) => {
      this.#child = undefined;
      if (restart && this.#watched.size > 0) this.ready();
    });
    child.unref();
    // A pipe that is held open for as long as we live must not be what keeps us alive.
    if (child.stdin instanceof Socket) child.stdin.unref();
    return child;
  }
}

/** What is to be started. */
export function reaperProgram(prlimit: string | undefined): { command: string; args: string[] } {
  const program = fileURLToPath(new URL("./reaper-process.js", import.meta.url));
  // The tag of a session that this server runs in is not for it: it has work to do when that session has ended.
  const untagged = prlimit === undefined ? [] : [prlimit, "--locks=unlimited:", "--"];
  const [command, args] = wrapCommand(untagged, process.execPath, [program]);
  return { command, args };
}
