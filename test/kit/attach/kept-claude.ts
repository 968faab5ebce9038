/** A Claude Code whose pipes stay with the test while its owners, which are Agent SDKs, come and go. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";

import type { SpawnedProcess, SpawnOptions } from "@anthropic-ai/claude-agent-sdk";

import { JsonObject } from "../../../src/domain/json.ts";
import { Changes } from "./changes.ts";

/** What stands between an owner and Claude Code. Undefined: the line is not passed on. */
export type Passing = (line: JsonObject) => JsonObject | undefined;

interface Connection {
  readonly stdout: PassThrough;
  readonly events: EventEmitter;
  readonly inwards: Passing;
}

const same: Passing = (line) => line;

export class KeptClaude {
  /** All lines from Claude Code; the number of a line is its place, from 1. */
  readonly lines: JsonObject[] = [];
  /** All lines that reached Claude Code. */
  readonly written: JsonObject[] = [];
  /** What owners did to the process: signals, and "end" for the end of its input. None of it reaches Claude Code. */
  readonly attempts: string[] = [];
  readonly #changes = new Changes();
  #child: ChildProcessWithoutNullStreams | undefined;
  #connection: Connection | undefined;
  /** The number of lines that are not delivered again. */
  #read = 0;

  /** Of the process while it lives. */
  get pid(): number | undefined {
    return this.#child?.exitCode === null && this.#child.signalCode === null ? this.#child.pid : undefined;
  }

  /** For the option `spawnClaudeCodeProcess`: the first owner starts Claude Code, the others get its pipes. */
  connect(request: SpawnOptions, inwards: Passing = same, outwards: Passing = same): SpawnedProcess {
    this.#child ??= this.#start(request);
    const stdin = new PassThrough();
    const connection = { stdout: new PassThrough(), events: new EventEmitter(), inwards };
    this.#connection = connection;
    createInterface({ input: stdin }).on("line", (text) => {
      const line = this.#connection === connection ? outwards(JsonObject.parse(JSON.parse(text))) : undefined;
      if (line) this.write(line);
    });
    stdin.on("end", () => this.attempts.push("end"));
    this.#deliver();
    const kill = (signal: NodeJS.Signals) => {
      this.attempts.push(signal);
      return true;
    };
    return Object.assign(connection.events, { stdin, stdout: connection.stdout, killed: false, exitCode: null, kill });
  }

  /** Writes a line to Claude Code, beside those of the owner. */
  write(line: JsonObject): void {
    this.written.push(line);
    this.#child?.stdin.write(`${JSON.stringify(line)}\n`);
    this.#changes.changed();
  }

  /** Hands a line to the owner, beside those of Claude Code. */
  hand(line: JsonObject): void {
    this.#connection?.stdout.write(`${JSON.stringify(line)}\n`);
  }

  /** The owner is gone: it reads and writes nothing any more. The next one gets the lines behind the first `read`. */
  leave(read = this.#read): void {
    this.#connection = undefined;
    this.#read = read;
  }

  /** What `look` finds, as soon as there is something. */
  async until<T>(look: (kept: this) => T | undefined): Promise<T> {
    return this.#changes.until(() => look(this));
  }

  /** The first line behind the first `after` that fits. */
  async line(fits: (line: JsonObject) => boolean, after = 0): Promise<JsonObject> {
    return this.until(({ lines }) => lines.slice(after).find(fits));
  }

  /** The last control request of Claude Code of this kind. */
  async request(subtype: string): Promise<JsonObject> {
    return this.until(({ lines }) =>
      lines.findLast((line) => line["type"] === "control_request" && inner(line).subtype === subtype),
    );
  }

  /** The answer to the last control request of this kind that an owner wrote. */
  async answer(subtype: string): Promise<JsonObject> {
    const { request_id: id } = await this.until(({ written }) =>
      written.findLast((line) => inner(line).subtype === subtype),
    );
    return JsonObject.parse((await this.line((line) => inner(line).request_id === id))["response"]);
  }

  /** It ends as it does when its input ends; the next owner starts another one. */
  async close(): Promise<void> {
    const child = this.#child;
    this.leave(this.lines.length);
    if (child === undefined) return;
    const closed = once(child, "close");
    child.stdin.end();
    await closed;
    this.leave(this.lines.length);
    this.#child = undefined;
  }

  /** It is killed with everything that it has started. */
  kill(): void {
    if (this.pid !== undefined) process.kill(-this.pid, "SIGKILL");
  }

  #start({ args, command, cwd, env }: SpawnOptions): ChildProcessWithoutNullStreams {
    const child = spawn(command, args, { cwd, env, detached: true, stdio: "pipe" });
    child.stderr.resume();
    createInterface({ input: child.stdout }).on("line", (text) => {
      this.lines.push(JsonObject.parse(JSON.parse(text)));
      this.#deliver();
      this.#changes.changed();
    });
    child.once("exit", (code, signal) => this.#connection?.events.emit("exit", code, signal));
    return child;
  }

  #deliver(): void {
    if (!this.#connection) return;
    for (const line of this.lines.slice(this.#read)) {
      this.#read++;
      const passed = this.#connection.inwards({ ...line, _line: this.#read });
      if (passed) this.hand(passed);
    }
  }
}

/** The inner part of a control line, which has its kind or the id of what it answers. */
export function inner({ request, response }: JsonObject): { subtype?: unknown; request_id?: unknown } {
  const part = request ?? response;
  return typeof part === "object" && part !== null ? part : {};
}
