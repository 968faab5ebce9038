// Runs commands like Claude Code.
import { spawn } from "node:child_process";

/** Runs a shell in a separate process group, so that `stopShell` ends all children. */
export function shell(command, cwd, signal) {
  const env = { ...process.env, CLAUDECODE: "1" };
  const child = spawn("/bin/bash", ["-c", command], { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  const stop = () => stopShell(child);
  signal?.addEventListener("abort", stop, { once: true });
  shells.add(child);
  const running = {
    output: "",
    ended: new Promise((end, fail) => {
      child.once("error", fail);
      child.once("exit", () => shells.delete(child));
      // `close` also waits for the pipes, which a child may hold open.
      child.once("close", (code) => {
        signal?.removeEventListener("abort", stop);
        end(code ?? KILLED);
      });
    }),
  };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk) => (running.output += chunk));
  return running;
}

/** Exit code with which a shell reports SIGKILL of a command. */
const KILLED = 137;

const shells = new Set();

function stopShell({ pid }) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The shell has ended.
  }
}

export function stopShells() {
  for (const child of shells) stopShell(child);
}
