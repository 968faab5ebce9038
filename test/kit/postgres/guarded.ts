import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Stops the program at the end of input, also after the death of this process. */
const GUARD = `"$@" & program=$!; read -r _; kill -TERM $program; wait $program`;

export interface Guarded {
  /** Output of the program so far. */
  readonly output: () => string;
  stop(): Promise<void>;
}

/** Starts a program between a server and its clients, and waits until it listens on `port`. */
export async function startGuarded(words: readonly string[], port: number): Promise<Guarded> {
  let output = "";
  const child = spawn("sh", ["-c", GUARD, "sh", ...words], { stdio: "pipe", detached: true });
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (output += String(text)));
  child.stdin.on("error", () => undefined);
  const stop = async (): Promise<void> => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
  };
  for (let tries = 0; tries < 500 && child.exitCode === null; tries += 1) {
    if (await isListening(port)) return { output: () => output, stop };
    await sleep(20);
  }
  await stop();
  throw new Error(`${String(words[0])} does not listen: ${output}`);
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return once(socket, "connect")
    .then(
      () => true,
      () => false,
    )
    .finally(() => socket.destroy());
}
