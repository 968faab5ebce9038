import { spawn, spawnSync } from "node:child_process";

/** Reason why tests cannot have a terminal here, or `undefined`. On macOS, `script` takes other arguments. */
export const WITHOUT_TERMINAL = String(spawnSync("/usr/bin/script", ["--version"]).stdout).includes("util-linux")
  ? undefined
  : "the program `script` of util-linux is not there";

/** Runs a shell command on a terminal of its own and types `answer` at the first question (`[y/N]`). */
export async function onTerminal(
  command: string,
  answer: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ screen: string; status: unknown }> {
  const terminal = spawn("/usr/bin/script", ["-qefc", command, "/dev/null"], { stdio: "pipe", env });
  let screen = "";
  terminal.stdout.on("data", (chunk: Buffer) => {
    const before = screen;
    screen += chunk.toString();
    if (!before.includes("[y/N]") && screen.includes("[y/N]")) terminal.stdin.write(answer);
  });
  const status = await new Promise((resolve) => terminal.once("close", resolve));
  return { screen, status };
}
