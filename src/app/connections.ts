import type { JsonObject } from "../domain/json.ts";
import type { Reach } from "../domain/attendance.ts";
import type { Logger } from "../engine/ports.ts";
import type { BypassSwitch } from "../tools/define.ts";
import { ClientCleanup } from "../tools/client-cleanup.ts";
import type { OwnCommand, Terms } from "./terms.ts";
import type { EnvironmentRecords } from "../claude/environment-records.ts";
import { unknownVariables } from "../config/load.ts";
import { withClaudePath } from "../domain/client-environment.ts";

export interface Connection extends Pick<Terms, "cwd" | "config" | "environment"> {
  /** Short id for lines of the log and of the audit log, such as `c1`. */
  readonly id: string;
  /** Id of the environment record for the client's sessions. */
  readonly environmentId: string;
  /** Bypass switch of this client alone, until its connection closes. */
  readonly bypass: BypassSwitch;
  /** Work to end when the client leaves. */
  readonly leaving: ClientCleanup;
  /** Call on each tool call, so that `reach` counts the client. `showsForms` is true if the client can show forms. */
  readonly heard: (showsForms: boolean) => void;
  /** Call for each session named by the client, so that `reach` counts the client for requests of `sessionId`. */
  readonly named: (sessionId: string) => void;
  /** Logger that adds the connection's `id` to each line. */
  readonly log: Logger;
}

interface ConnectionsOptions {
  /** Setting of the operator, in force while no client is connected. */
  readonly allowsBypass: boolean;
  readonly environments: EnvironmentRecords;
  /** False if the bounds forbid bypass to all clients. */
  readonly mayAllow: boolean;
}

/** Open connections of an engine. */
export class Connections {
  readonly #allowsBypass: boolean;
  readonly #mayAllow: boolean;
  readonly #log: Logger;
  readonly #environments: EnvironmentRecords;
  readonly #open = new Map<string, Connection>();
  readonly #records = new Map<string, ReturnType<EnvironmentRecords["open"]>>();
  /**
   * Command lines that start this server, which no session may use; by JSON text, newest last. Kept after the client has left,
   * because spares started under these command lines stay usable.
   */
  readonly #ownCommands = new Map<string, OwnCommand>();
  readonly #onNewCommand: (() => void)[] = [];
  #count = 0;

  /** Clients with at least one call; the value is `showsForms` of the last. */
  readonly #showsForms = new Map<string, boolean>();
  /** Ids of the sessions named by each client, oldest first. */
  readonly #named = new Map<string, Set<string>>();
  readonly #onReach: ((sessionId: string) => void)[] = [];

  constructor({ allowsBypass, environments, mayAllow }: ConnectionsOptions, log: Logger) {
    this.#environments = environments;
    this.#allowsBypass = allowsBypass;
    this.#mayAllow = mayAllow;
    this.#log = log;
  }

  open({ isOwn = false, ownCommands, sessions = [], ...terms }: Terms): Connection {
    this.#count += 1;
    const id = `c${String(this.#count)}`;
    const log = withFields(this.#log, { connection: id });
    // Unknown variables of the server were logged at its start.
    if (!isOwn) for (const problem of unknownVariables(terms.environment)) log.warn(problem);
    this.#learn(ownCommands);
    const leaving = new ClientCleanup(log);
    const heard = (showsForms: boolean) => this.#heard(id, showsForms);
    const named = (sessionId: string) => this.#name(id, sessionId);
    const bypass = bypassSwitch(terms.config.allowBypass, this.#mayAllow, log);
    const record = isOwn ? undefined : this.#environments.open(clientEnvironment(terms));
    if (record) this.#records.set(id, record);
    const connection = { ...terms, id, heard, named, leaving, log, bypass, environmentId: record?.id ?? "" };
    this.#open.set(id, connection);
    for (const sessionId of sessions) named(sessionId);
    return connection;
  }

  close({ id, leaving }: Pick<Connection, "id" | "leaving">): void {
    this.#open.delete(id);
    this.#records.get(id)?.close();
    this.#records.delete(id);
    leaving.end();
    const sessions = this.#named.get(id) ?? [];
    this.#named.delete(id);
    if (this.#showsForms.delete(id)) this.#tellReach(sessions);
  }

  #heard(id: string, showsForms: boolean): void {
    if (!this.#open.has(id) || this.#showsForms.get(id) === showsForms) return;
    this.#showsForms.set(id, showsForms);
    this.#tellReach(this.#named.get(id) ?? []);
  }

  #name(id: string, sessionId: string): void {
    if (!this.#open.has(id)) return;
    const sessions = this.#named.get(id) ?? new Set();
    this.#named.set(id, sessions);
    const isNew = !sessions.delete(sessionId);
    sessions.add(sessionId);
    const [oldest] = sessions;
    if (oldest !== undefined && sessions.size > MAX_SESSIONS) sessions.delete(oldest);
    if (isNew) this.#tellReach([sessionId]);
  }

  /**
   * Reach of the requests of `sessionId`: the calling model, and the user at a form. A client counts once it has made a call
   * and named the session.
   */
  reach(sessionId: string): Reach {
    const clients = [...this.#showsForms].filter(([id]) => this.#named.get(id)?.has(sessionId));
    return { caller: clients.length > 0, user: clients.some(([, showsForms]) => showsForms) };
  }

  onReach(listener: (sessionId: string) => void): void {
    this.#onReach.push(listener);
  }

  #tellReach(sessionIds: Iterable<string>): void {
    for (const sessionId of sessionIds) for (const listener of this.#onReach) listener(sessionId);
  }

  /**
   * True if any client allows bypass, because a session may have prompts of several clients. Without clients, the operator
   * decides.
   */
  allowsBypass(): boolean {
    if (this.#open.size === 0) return this.#allowsBypass;
    return [...this.#open.values()].some(({ bypass }) => bypass.isAllowed());
  }

  /** Calls `listener` after a client has come with a new command line. */
  onNewCommand(listener: () => void): void {
    this.#onNewCommand.push(listener);
  }

  #learn(commands: readonly OwnCommand[]): void {
    const spelled = new Map(commands.map((command) => [JSON.stringify(command), command]));
    if (totalLength(spelled) > MAX_COMMAND_CHARS / 2) {
      this.#log.warn("the command line of a client is too long to be denied: sessions can start this server by it");
      return;
    }
    const isNew = [...spelled.keys()].some((text) => !this.#ownCommands.has(text));
    for (const [text, command] of spelled) {
      this.#ownCommands.delete(text);
      this.#ownCommands.set(text, command);
    }
    for (const text of this.#ownCommands.keys()) {
      if (totalLength(this.#ownCommands) <= MAX_COMMAND_CHARS) break;
      this.#ownCommands.delete(text);
    }
    if (isNew) for (const listener of this.#onNewCommand) listener();
  }

  ownCommands(): readonly OwnCommand[] {
    return [...this.#ownCommands.values()];
  }
}

/**
 * Maximum length of all command lines together, characters. Each process gets them in one argument, limited by Linux to 131,072
 * bytes. The least recently used is forgotten first.
 */
const MAX_COMMAND_CHARS = 60_000;

function totalLength(spelled: ReadonlyMap<string, OwnCommand>): number {
  return [...spelled.keys()].reduce((sum, { length }) => sum + length, 0);
}

/** Maximum number of sessions per connection. The least recently named session is forgotten first. */
const MAX_SESSIONS = 10_000;

function clientEnvironment({ config, environment }: Pick<Terms, "config" | "environment">) {
  return withClaudePath(environment, config.claudePath);
}

function bypassSwitch(allowed: boolean, mayAllow: boolean, log: Logger): BypassSwitch {
  let isAllowed = allowed;
  return {
    isAllowed: () => isAllowed && mayAllow,
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
