/** A Claude Code whose pipes the test keeps while its owners, Agent SDKs, come and go. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";

import type { SpawnedProcess, SpawnOptions } from "@anthropic-ai/claude-agent-sdk";

import { JsonObject } from "../../../src/domain/json.ts";
import { Changes } from "./changes.ts";

/** Filter between an owner and Claude Code. Returns `undefined` to drop the line. */
export type LineFilter = (line: JsonObject) => JsonObject | undefined;

interface Connection {
  readonly stdout: PassThrough;
  readonly events: EventEmitter;
  readonly inwards: LineFilter;
}

const unchanged: LineFilter = (line) => line;

export class KeptClaude {
  /** All lines from Claude Code; the number of a line is its index + 1. */
  readonly lines: JsonObject[] = [];
  /** All lines that reached Claude Code. */
  readonly written: JsonObject[] = [];
  /** Signals from owners, and "end" for the end of stdin. None reaches Claude Code. */
  readonly attempts: string[] = [];
  readonly #changes = new Changes();
  #child: ChildProcessWithoutNullStreams | undefined;
  #connection: Connection | undefined;
  /** Number of lines already delivered to an owner. */
  #read = 0;

  /** `undefined` once the process has ended. */
  get pid(): number | undefined {
    return this.#child?.exitCode === null && this.#child.signalCode === null ? this.#child.pid : undefined;
  }

  /** For the option `spawnClaudeCodeProcess`: starts Claude Code for the first owner, hands later owners the same pipes. */
  connect(request: SpawnOptions, inwards: LineFilter = unchanged, outwards: LineFilter = unchanged): SpawnedProcess {
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

  /** Writes `line` to Claude Code, in addition to the owner's lines. */
  write(line: JsonObject): void {
    this.written.push(line);
    this.#child?.stdin.write(`${JSON.stringify(line)}\n`);
    this.#changes.changed();
  }

  /** Hands `line` to the owner, in addition to Claude Code's lines. */
  hand(line: JsonObject): void {
    this.#connection?.stdout.write(`${JSON.stringify(line)}\n`);
  }

  /** Disconnects the owner. The next owner gets the lines after the first `read`. */
  leave(read = this.#read): void {
    this.#connection = undefined;
    this.#read = read;
  }

  /** Resolves with the first result of `look` other than `undefined`. */
  async until<T>(look: (kept: this) => T | undefined): Promise<T> {
    return this.#changes.until(() => look(this));
  }

  /** Resolves with the first line after the first `after` lines for which `fits` is true. */
  async line(fits: (line: JsonObject) => boolean, after = 0): Promise<JsonObject> {
    return this.until(({ lines }) => lines.slice(after).find(fits));
  }

  /** Resolves with Claude Code's latest control request of `subtype`. */
  async request(subtype: string): Promise<JsonObject> {
    return this.until(({ lines }) =>
      lines.findLast((line) => line["type"] === "control_request" && inner(line).subtype === subtype),
    );
  }

  /** Resolves with Claude Code's response to the latest control request of `subtype` from an owner. */
  async answer(subtype: string): Promise<JsonObject> {
    const { request_id: id } = await this.until(({ written }) =>
      written.findLast((line) => inner(line).subtype === subtype),
    );
    return JsonObject.parse((await this.line((line) => inner(line).request_id === id))["response"]);
  }

  /** Ends Claude Code by closing stdin; the next owner starts a new process. */
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

  /** Kills Claude Code with its process group. */
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

/** Returns the inner part of a control line: has `subtype`, or `request_id` of the request answered. */
export function inner({ request, response }: JsonObject): { subtype?: unknown; request_id?: unknown } {
  const part = request ?? response;
  return typeof part === "object" && part !== null ? part : {};
}
