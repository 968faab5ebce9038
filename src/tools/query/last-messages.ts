import type { JsonObject } from "../../domain/json.ts";
import { fit, jsonBytes } from "../../view/size.ts";

/** Divisor: maximum share of a single message in the answer, so that others have room. */
const SHARE = 4;

/** Keeps the last messages of a query, within `most` and `maxBytes`. Memory stays bounded for any number of messages. */
export class LastMessages {
  readonly #most: number;
  readonly #maxBytes: number;
  readonly #kept: { readonly message: JsonObject; readonly bytes: number }[] = [];
  #bytes = 0;
  #total = 0;

  /** `maxBytes` is for all messages together, bytes of JSON. */
  constructor(most: number, maxBytes: number) {
    this.#most = most;
    this.#maxBytes = maxBytes;
  }

  add(message: JsonObject): void {
    this.#total += 1;
    const mark = { truncated: true };
    const { cut, value } = fit(message, Math.floor(this.#maxBytes / SHARE) - jsonBytes(mark));
    const kept = cut ? { ...value, ...mark } : value;
    const bytes = jsonBytes(kept) + 1;
    this.#kept.push({ message: kept, bytes });
    this.#bytes += bytes;
    while (this.#kept.length > this.#most || this.#bytes > this.#maxBytes) {
      this.#bytes -= this.#kept.shift()?.bytes ?? 0;
    }
  }

  get messages(): JsonObject[] {
    return this.#kept.map(({ message }) => message);
  }

  get total(): number {
    return this.#total;
  }

  get omitted(): number {
    return this.#total - this.#kept.length;
  }
}
