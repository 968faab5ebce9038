import type { Socket } from "node:net";
import { SettingsError, whyOf } from "./failures.ts";
import { greet, buildHello } from "./greet.ts";
import { isNested } from "./own-server.ts";
import type { DaemonSource } from "./proxy.ts";
import { stateFolder } from "../config/state-folder.ts";
import { socketFolders } from "../daemon/socket-folders.ts";
import { Countdown } from "../daemon/countdown.ts";
import { checkName } from "../daemon/socket.ts";
import type { ClientHello } from "../daemon/wire.ts";

/** `--daemon NAME`: a daemon started by its operator under this name, of any build with equal `PROTOCOL`. */

/** Time in which the operator may start the daemon again, ms. */
const START_MS = 3_000;

export class NamedDaemon implements DaemonSource {
  readonly startMs = START_MS;
  readonly #name: string;
  readonly #hello: ClientHello;

  constructor(name: string, argv: readonly string[], purpose: ClientHello["purpose"] = "mcp") {
    this.#name = name;
    this.#hello = buildHello(argv, purpose);
  }

  absent(why: string): string {
    const command = `claude-agents-mcp daemon run --daemon ${this.#name}`;
    return `--daemon ${this.#name}: ${why}. Start it: ${command}. \`claude-agents-mcp daemon status\` lists daemons.`;
  }

  async connect({ leftMs } = new Countdown(START_MS), sessions?: readonly string[]): Promise<Socket> {
    this.#check();
    const folders = await socketFolders(stateFolder(process.env, process.platform));
    return greet({ folders, name: this.#name, hello: this.#hello, sessions }, leftMs);
  }

  #check(): void {
    const { env, pid } = process;
    try {
      checkName(this.#name);
    } catch (error) {
      throw new SettingsError(`--daemon ${whyOf(error)}.`);
    }
    if (isNested({ env, pid })) {
      throw new SettingsError(
        `--daemon ${this.#name}: this runs inside a session of claude-agents-mcp, which may start no others. Leave it out.`,
      );
    }
  }
}
