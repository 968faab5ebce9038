import { spawn, type ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";

/**
 * Ends our processes when this server dies in a way that lets it end nothing: SIGKILL, a crash, a power cut of the
 * client. The reaper is a small process of its own that holds the other end of a pipe; when the pipe closes it ends
 * what it was told of. Where Linux can do the same for us (`setpriv --pdeathsig`) it is not needed.
 */
export class Reaper {
  #child: ChildProcess | undefined;

  watch(pid: number): void {
    this.#tell(`+${String(pid)}\n`);
  }

  forget(pid: number): void {
    this.#tell(`-${String(pid)}\n`);
  }

  #tell(line: string): void {
    this.#child ??= start();
    this.#child.stdin?.write(line);
  }
}

function start(): ChildProcess {
  const program = fileURLToPath(new URL("./reaper-process.js", import.meta.url));
  // Detached: a Ctrl-C in the client's terminal must not take the reaper before us.
  const child = spawn(process.execPath, [program], { stdio: ["pipe", "ignore", "ignore"], detached: true, env: {} });
  child.on("error", () => undefined);
  child.stdin.on("error", () => undefined);
  child.unref();
  // A pipe that is held open for as long as we live must not be what keeps us alive.
  if (child.stdin instanceof Socket) child.stdin.unref();
  return child;
}
