/** Thrown if a process is not started. `subtype` becomes the `errorSubtype` of its turn. */
export class StartError extends Error {
  override readonly name = "StartError";
  readonly subtype: string;

  constructor(subtype: string, message: string) {
    super(message);
    this.subtype = subtype;
  }
}
