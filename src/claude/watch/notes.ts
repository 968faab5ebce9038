/** Collects sentences about what is not seen. */
export class Notes {
  readonly sentences = new Set<string>();
  /** False if changes can have been missed. */
  isComplete = true;

  /** Adds a sentence that explains a comparison, without making `isComplete` false. */
  explain(sentence: string): void {
    this.sentences.add(sentence);
  }

  /** Adds a sentence about changes that can have been missed, and makes `isComplete` false. */
  miss(sentence: string): void {
    this.isComplete = false;
    this.sentences.add(sentence);
  }
}
