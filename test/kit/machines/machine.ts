import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { childrenOf } from "../process-tree.ts";

/** Reaps orphans, as the first process of a system has to. */
const INIT = "while :; do sleep infinity & wait $!; done";
/** Mounts an empty disk over each argument, then tells that the machine is up. */
const BOOT = `for disk; do mount -t tmpfs none "$disk" || exit; done; echo up; ${INIT}`;

/** Without root, the namespaces belong to a user namespace. */
const [UNSHARE_USER, ENTER_USER] =
  process.getuid?.() === 0
    ? [[], []]
    : [
        ["--user", "--map-root-user"],
        ["--user", "--preserve-credentials"],
      ];

/** A pid namespace without the disks of the other machines; to a server inside, a machine of its own. */
export class Machine {
  readonly #first: ChildProcess;
  readonly #init: number;
  readonly #namespace: string;
  readonly #ended: Promise<unknown>;

  private constructor(first: ChildProcess, init: number, ended: Promise<unknown>) {
    this.#first = first;
    this.#init = init;
    this.#namespace = namespaceOf(init);
    this.#ended = ended;
  }

  /** `hidden`: folders that are empty inside. */
  static async start(hidden: readonly string[]): Promise<Machine> {
    const args = [...UNSHARE_USER, "--pid", "--fork", "--kill-child=KILL", "--mount-proc"];
    const first = spawn("unshare", [...args, "--", "/bin/sh", "-c", BOOT, "init", ...hidden], {
      env: { PATH: process.env["PATH"] },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let problem = "";
    first.stderr.on("data", (text: Buffer) => (problem += String(text)));
    const ended = new Promise((resolve) => first.once("close", resolve));
    const failed = ended.then(() => {
      throw new Error(`no machine can be started here: ${problem}`);
    });
    await Promise.race([once(first.stdout, "data"), failed]);
    failed.catch(() => undefined);
    const [init = 0] = childrenOf(first.pid ?? 0);
    return new Machine(first, init, ended);
  }

  /** Words before a command that run the command inside. The command is a child of the first word's process. */
  get through(): readonly string[] {
    return ["nsenter", "-t", String(this.#init), ...ENTER_USER, "-p", "-m", "-W", process.cwd(), "--"];
  }

  /** Pids, as seen outside, of all that runs inside. */
  processes(): number[] {
    const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
    return all.filter((pid) => pid !== this.#init && namespaceOf(pid) === this.#namespace && stateOf(pid) !== "Z");
  }

  /** Stops everything at once, as a hypervisor does. */
  freeze(): void {
    for (;;) {
      const running = this.processes().filter((pid) => stateOf(pid) !== "T");
      if (running.length === 0) return;
      for (const pid of running) signal(pid, "SIGSTOP");
    }
  }

  continue(): void {
    for (const pid of this.processes()) signal(pid, "SIGCONT");
  }

  /** Ends everything at once, without a word to the server. Its disk stays. */
  async kill(): Promise<void> {
    if (this.#first.exitCode === null && this.#first.signalCode === null) signal(this.#init, "SIGKILL");
    await this.#ended;
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // The process ended meanwhile.
  }
}

function namespaceOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${String(pid)}/ns/pid`);
  } catch {
    return "";
  }
}

/** Returns the state of a process by its letter, "" after its end. */
function stateOf(pid: number): string {
  try {
    return / ([A-Z]) /.exec(readFileSync(`/proc/${String(pid)}/stat`, "utf8").replace(/^.*\)/s, ""))?.[1] ?? "";
  } catch {
    return "";
  }
}
