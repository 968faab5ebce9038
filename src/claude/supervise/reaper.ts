import { spawn, type ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { hasPipe, outOfDescriptorsText } from "../../security/descriptors.ts";
import type { ProcessTag } from "./process-tag.ts";
import { wrapCommand } from "./isolation.ts";
import { whenDead } from "./tree.ts";

/**
 * Ends the registered processes and their descendants if this server dies without a chance to do so: `SIGKILL`, a crash, a
 * power cut of the client. On a store of several machines, also if this server is frozen for longer than its lease. A small separate process holds the far end of a pipe, and acts once the pipe closes.
 */
export class Reaper {
  readonly #prlimit: string | undefined;
  #child: ChildProcess | undefined;
  /** Registration lines by pid, repeated to a restarted reaper. */
  readonly #watched = new Map<number, string>();

  constructor(prlimit: string | undefined) {
    this.#prlimit = prlimit;
  }

  /** Throws if the reaper cannot start, because then no process may start. */
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

  /** Ends the registered processes after `forMs`, unless another call follows. */
  leaseRenewed(forMs: number): void {
    this.#send(`=${String(Math.floor(forMs))}\n`);
  }

  #send(line: string): void {
    this.#child?.stdin?.write(line);
  }

  #start(): ChildProcess {
    const { args, command } = reaperProgram(this.#prlimit);
    // Detached, so that Ctrl-C in the client's terminal does not end the reaper before this server.
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
    // `unref`, because the pipe stays open and would keep this server alive.
    if (child.stdin instanceof Socket) child.stdin.unref();
    return child;
  }
}

/** Returns the command line of the reaper, for this server or a shim. */
export function reaperProgram(prlimit: string | undefined): { command: string; args: string[] } {
  const program = fileURLToPath(new URL("./reaper-process.js", import.meta.url));
  // Removes the inherited tag number: if this server runs inside a session, the reaper must outlive the session.
  const untagged = prlimit === undefined ? [] : [prlimit, "--locks=unlimited:", "--"];
  const [command, args] = wrapCommand(untagged, process.execPath, [program]);
  return { command, args };
}
