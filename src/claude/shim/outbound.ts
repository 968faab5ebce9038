import { Writable } from "node:stream";
import { parseJson } from "../../domain/json.ts";
import { isId } from "../../shim/fields.ts";

/** Stdin of a Claude Code behind a shim, for the Agent SDK. Splits the text into lines and gives each line an id. */

export interface OutboundLine {
  readonly id: string;
  readonly text: string;
  /** `request_id`, only for the SDK's `initialize`. */
  readonly initializeId?: string;
}

export interface OutboundOptions {
  /** Epoch of the owner. Separates requests of this SDK from requests of a former owner's SDK. */
  readonly epoch: () => number;
  /**
   * True if a former owner has registered hooks with Claude Code. A second registration would abort each open hook call and its
   * tool call.
   */
  readonly hasHooks: () => boolean;
  readonly send: (line: OutboundLine) => void;
  /** Called once the SDK has ended the input. Leaves Claude Code's `stdin` open: `ShimmedProcess.endInput` closes `stdin`. */
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
    const line = fieldsOf(parseJson(text));
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

  /**
   * Derives an id from the content, so that a message written again by a later owner keeps the id. Requests of the SDK itself
   * get the epoch as prefix.
   */
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

/** Returns `{}` if `value` is not an object. */
export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
