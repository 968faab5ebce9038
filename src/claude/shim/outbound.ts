import { Writable } from "node:stream";
import { isId } from "../../shim/protocol.ts";

/** The stdin of a Claude Code behind a shim, as the Agent SDK has it: splits what it writes into lines and gives each its id. */

/** One line towards Claude Code. */
export interface OutboundLine {
  readonly id: string;
  readonly text: string;
  /** Of the SDK's `initialize`. */
  readonly initializeId?: string;
}

export interface OutboundOptions {
  /** Of the owner: the SDK's own requests are not those of the former owner's SDK. */
  readonly epoch: () => number;
  /**
   * Whether Claude Code has its hooks from a former owner: named again, it would give up each hook call that is open, and its tool
   * call with it.
   */
  readonly hasHooks: () => boolean;
  readonly send: (line: OutboundLine) => void;
  /** The SDK has ended the input. It says nothing to the shim: who ends the process says so. */
  readonly onEnd: () => void;
}

const LINE_BREAK = "\n";

export class Outbound extends Writable {
  readonly #options: OutboundOptions;
  #parts: string[] = [];
  #count = 0;

  constructor(options: OutboundOptions) {
    super({ decodeStrings: false });
    this.#options = options;
  }

  override _write(chunk: Buffer | string, _: BufferEncoding, done: () => void): void {
    const [first = "", ...rest] = chunk.toString().split(LINE_BREAK);
    this.#parts.push(first);
    for (const part of rest) {
      this.#take(this.#parts.join(""));
      this.#parts = [part];
    }
    done();
  }

  override _final(done: () => void): void {
    this.#options.onEnd();
    done();
  }

  #take(text: string): void {
    if (text.trim() === "") return;
    const line = fieldsOf(parsed(text));
    const id = this.#idOf(line);
    const request = fieldsOf(line["request"]);
    const isInitialize = line["type"] === "control_request" && request["subtype"] === "initialize";
    if (!isInitialize) return this.#options.send({ id, text });
    const { hooks: _, ...others } = request;
    const sent = this.#options.hasHooks() ? JSON.stringify({ ...line, request: others }) : text;
    this.#options.send({ id, text: sent, initializeId: textOf(line["request_id"]) });
  }

  #idOf(line: Fields): string {
    const id = this.#namedId(line);
    if (id !== undefined && isId(id)) return id;
    this.#count += 1;
    return `${String(this.#options.epoch())}:line-${String(this.#count)}`;
  }

  /** Of a message that may be written again by another owner: that of what it is about, by which owner it is written. */
  #namedId(line: Fields): string | undefined {
    const requestId = textOf(line["request_id"]);
    switch (line["type"]) {
      case "user":
        return textOf(line["uuid"]) || undefined;
      case "control_response":
        return `r:${textOf(fieldsOf(line["response"])["request_id"])}`;
      case "control_request":
        return `${String(this.#options.epoch())}:${requestId}`;
      case "control_cancel_request":
        return `c:${requestId}`;
      default:
        return undefined;
    }
  }
}

export type Fields = Readonly<Record<string, unknown>>;

/** Nothing where it is no object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

/** Undefined where it is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
