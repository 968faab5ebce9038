/** The last lines of a text that comes in pieces, whole: of one that was cut in two the rest of a secret would be told. */
export class LastLines {
  readonly #most: number;
  #text = "";
  /** What comes is the rest of a line whose beginning is gone. */
  #isCut = false;

  /** In characters. */
  constructor(most: number) {
    this.#most = most;
  }

  get text(): string {
    return this.#text;
  }

  take(piece: string): void {
    const text = this.#text + (this.#isCut ? afterLine(piece) : piece);
    if (this.#isCut && piece.includes("\n")) this.#isCut = false;
    if (text.length <= this.#most) {
      this.#text = text;
      return;
    }
    const cut = text.slice(-this.#most);
    this.#isCut = !cut.includes("\n");
    this.#text = afterLine(cut);
  }
}

/** What follows the first line break. */
function afterLine(text: string): string {
  const end = text.indexOf("\n");
  return end < 0 ? "" : text.slice(end + 1);
}
