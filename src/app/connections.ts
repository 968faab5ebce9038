import type { JsonObject } from "../domain/json.ts";
import type { Reach } from "../domain/session.ts";
import type { ConnectionTerms } from "../engine/api.ts";
import type { Operator } from "../engine/policy/operator.ts";
import type { Logger } from "../engine/ports.ts";
import type { BypassSwitch } from "../tools/define.ts";
import { Leaving } from "../tools/leaving.ts";

/** How a client has started this server: what belongs to it, and not to the process that serves it. */
export interface ClientStart {
  /** The folder in which it was started: the default `cwd`, and the one from which relative paths count. Throws AppError. */
  readonly cwd: () => string;
  /** Its command line in all spellings under which a session could start this server again. */
  readonly ownCommands: readonly OwnCommand[];
}

/** [command, ...args] */
export type OwnCommand = readonly [string, ...string[]];

/** A client that is connected. */
export interface Connection extends Pick<ClientStart, "cwd"> {
  /** Short; in lines of the log and of the audit log. */
  readonly id: string;
  /** Of this client alone; it ends with the connection. */
  readonly bypass: BypassSwitch;
  /** What ends with this client. */
  readonly leaving: Leaving;
  /** It makes a call: what it can show is known from then on. */
  readonly heard: (showsForms: boolean) => void;
  /** The log with the connection's id in each line. */
  readonly log: Logger;
}

/** The clients of one engine. */
export class Connections {
  readonly #allowsBypass: boolean;
  readonly #log: Logger;
  readonly #open = new Map<string, Connection>();
  /** By their spelling; kept when the client leaves, since spares that were started under them are still good. */
  readonly #ownCommands = new Map<string, OwnCommand>();
  readonly #onNewCommand: (() => void)[] = [];
  #count = 0;

  /** Clients that have made a call, and whether they show forms. */
  readonly #showsForms = new Map<string, boolean>();
  readonly #onReach: ((reach: Reach) => void)[] = [];

  /** `allowsBypass` is the operator's setting, with which each connection begins. */
  constructor(allowsBypass: boolean, log: Logger) {
    this.#allowsBypass = allowsBypass;
    this.#log = log;
  }

  open({ cwd, ownCommands }: ClientStart): Connection {
    this.#count += 1;
    const id = `c${String(this.#count)}`;
    const log = withFields(this.#log, { connection: id });
    this.#learn(ownCommands);
    const leaving = new Leaving(log);
    const heard = (showsForms: boolean) => this.#heard(id, showsForms);
    const connection = { id, cwd, heard, leaving, log, bypass: bypassSwitch(this.#allowsBypass, log) };
    this.#open.set(id, connection);
    return connection;
  }

  close({ id, leaving }: Pick<Connection, "id" | "leaving">): void {
    this.#open.delete(id);
    leaving.end();
    if (this.#showsForms.delete(id)) this.#tellReach();
  }

  #heard(id: string, showsForms: boolean): void {
    if (!this.#open.has(id) || this.#showsForms.get(id) === showsForms) return;
    this.#showsForms.set(id, showsForms);
    this.#tellReach();
  }

  reach(): Reach {
    return { caller: this.#showsForms.size > 0, user: [...this.#showsForms.values()].includes(true) };
  }

  onReach(listener: (reach: Reach) => void): void {
    this.#onReach.push(listener);
  }

  #tellReach(): void {
    for (const listener of this.#onReach) listener(this.reach());
  }

  /** For sessions, which may have prompts of several clients: what any of these allows; without clients, the operator. */
  allowsBypass(): boolean {
    if (this.#open.size === 0) return this.#allowsBypass;
    return [...this.#open.values()].some(({ bypass }) => bypass.isAllowed());
  }

  /** Called when a client has a command line that none has had before. */
  onNewCommand(listener: () => void): void {
    this.#onNewCommand.push(listener);
  }

  #learn(commands: readonly OwnCommand[]): void {
    const before = this.#ownCommands.size;
    for (const command of commands) this.#ownCommands.set(JSON.stringify(command), command);
    if (this.#ownCommands.size > before) for (const listener of this.#onNewCommand) listener();
  }

  ownCommands(): readonly OwnCommand[] {
    return [...this.#ownCommands.values()];
  }
}

/** The terms of one connection: those of the server, but for what its client has switched. */
export function termsOf(
  { gate, ...operator }: Operator,
  { bypass, id }: Pick<Connection, "bypass" | "id">,
): ConnectionTerms {
  return { ...operator, id, gate: { ...gate, allowsBypass: () => bypass.isAllowed() } };
}

function bypassSwitch(allowed: boolean, log: Logger): BypassSwitch {
  let isAllowed = allowed;
  return {
    isAllowed: () => isAllowed,
    set(now, principal) {
      log.warn("audit: bypassPermissions switched", { allowed: now, before: isAllowed, principal });
      isAllowed = now;
    },
  };
}

function withFields(log: Logger, fields: JsonObject): Logger {
  const line =
    (level: keyof Logger): Logger[keyof Logger] =>
    (message, more = {}) =>
      log[level](message, { ...fields, ...more });
  return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}
