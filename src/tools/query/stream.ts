import type { JsonObject } from "../../domain/json.ts";
import type { ToolCall } from "../define.ts";
import { headline, presentEvent } from "../../view/event.ts";

/** The messages of a query while they come, as log notifications, and in a word as progress. */
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

  /** It was sent before. */
  recall(message: JsonObject, at: number): void {
    this.#keep(message, at);
    this.#sequence += 1;
  }

  /** Nothing has come for a while: clients that time out on silence get a sign of life. */
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
