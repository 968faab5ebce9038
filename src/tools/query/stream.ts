import type { JsonObject } from "../../domain/json.ts";
import type { ToolCall } from "../define.ts";
import { headline, presentEvent } from "../../view/event.ts";

/** Streams the messages of a query as log notifications, and one line of each message as progress. */
export class MessageStream {
  readonly #sessionId: string;
  readonly #client: ToolCall["client"];
  #sequence = 0;
  #last = "Claude Code is at work";

  constructor(sessionId: string, { client }: ToolCall) {
    this.#sessionId = sessionId;
    this.#client = client;
  }

  async send(message: JsonObject, at: number): Promise<void> {
    this.#keep(message, at);
    this.#advance();
    await this.#log("info", { type: "claude_code_message", message }, at);
  }

  /** Sends a line as progress only, because the notifications are messages of Claude Code. */
  advance(line: string): void {
    this.#last = line;
    this.#advance();
  }

  /**
   * Counts a message of an earlier round without sending it again. A form ends a round of the call, which the client then repeats
   * with the answer.
   */
  recall(message: JsonObject, at: number): void {
    this.#keep(message, at);
    this.#sequence += 1;
  }

  /** Repeats the last line as a keepalive, because a client may time out on silence. */
  beat(): void {
    this.#advance();
  }

  async fail(failure: { readonly error: string } & JsonObject, at: number): Promise<void> {
    await this.#log("error", { type: "claude_code_error", ...failure }, at);
  }

  #keep(message: JsonObject, at: number): void {
    const shown = presentEvent({ id: 1, at, type: "message", data: { message } }, "delta_compact");
    if (shown) this.#last = headline(shown);
  }

  #advance(): void {
    this.#client.progress?.(this.#last);
  }

  async #log(level: "info" | "error", { type, ...rest }: JsonObject, at: number): Promise<void> {
    this.#sequence += 1;
    const about = { timestamp: new Date(at).toISOString(), sequence: this.#sequence };
    await this.#client.log?.(level, JSON.stringify({ type, sessionId: this.#sessionId, ...rest, ...about }));
  }
}
