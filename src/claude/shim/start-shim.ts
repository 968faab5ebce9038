import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { unlessWithin } from "../process/time-limit.ts";
import type { Logger } from "../../engine/ports.ts";
import type { ShimClient } from "./connection.ts";

/** Starts shims. */

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

export interface ShimSettings extends ShimClient {
  readonly stateFolder: string;
  /** Time for which a shim keeps processes while no server of `daemon` owns them, ms. */
  readonly keepMs: number;
  /** Command to restart this server after its death, run by a shim; `undefined` if another program restarts the server. */
  readonly restart: (Program & { readonly env: Readonly<Record<string, string>>; readonly cwd: string }) | undefined;
  /** Returns an unused path in a folder that only the user can enter. */
  readonly newAddress: () => Promise<string>;
  /** Removes sockets of dead shims of `daemon`, and returns the remaining ones. */
  readonly findSockets: () => Promise<readonly string[]>;
  readonly log: Pick<Logger, "debug" | "info" | "warn">;
}

/** Time limit for the start of a shim, ms. A busy machine starts Node in a second. */
const READY_MS = 10_000;

/** Starts the shim program outside this server's session and process group. Resolves to the first line of its output. */
export async function startShim(
  socket: string,
  settings: Pick<ShimSettings, "daemon" | "keepMs" | "restart" | "stateFolder">,
  reaper: Program | undefined,
): Promise<string> {
  const { daemon, keepMs, restart, stateFolder: cwd } = settings;
  const given = { socket, daemon, keepMs, stateFolder: cwd, ...(restart && { restart }), ...(reaper && { reaper }) };
  const program = fileURLToPath(new URL("../../shim/shim.js", import.meta.url));
  const child = spawn(process.execPath, [program], {
    cwd,
    detached: true,
    env: {},
    stdio: ["pipe", "pipe", "ignore"],
    windowsHide: true,
  });
  child.unref();
  child.stdin.on("error", () => undefined).end(JSON.stringify(given));
  return new Promise((resolve, reject) => {
    let said = "";
    const finish = (then: () => void) => {
      onWord();
      child.stdout.destroy();
      then();
    };
    const onWord = unlessWithin(READY_MS, () => {
      child.kill("SIGKILL");
      finish(() => reject(new Error(`it was not ready within ${String(READY_MS)} ms`)));
    });
    child.once("error", (error) => finish(() => reject(error)));
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("\n")) finish(() => resolve(said.trim()));
    });
    child.stdout.once("end", () => finish(() => resolve(said.trim())));
  });
}
