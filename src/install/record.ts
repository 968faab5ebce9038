import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { z } from "zod";

/**
 * Records in the state folder each change by `install`, so that `uninstall` can restore an unchanged file byte for byte. A copy
 * of the file before the last change lies beside the record, for the user.
 */

const Stored = z.object({
  file: z.string(),
  /** Text before the first change; "" if there was no file. */
  before: z.string(),
  /** True if there was no file. */
  isNew: z.boolean(),
  /** SHA-256 of the written text. */
  written: z.string(),
  /** Folders created for the file, deepest first. */
  folders: z.array(z.string()),
});
export type Stored = z.infer<typeof Stored>;

export class ChangeRecord {
  readonly #folder: string;
  readonly #file: string;

  /** Records changes of a single `file` of `client`. */
  constructor(stateFolder: string, client: string, file: string) {
    this.#folder = join(stateFolder, "clients", `${client}-${digestOf(file).slice(0, 12)}`);
    this.#file = file;
  }

  /** Returns `undefined` without a usable record: the file is then edited like any other. */
  async read(): Promise<Stored | undefined> {
    try {
      const found = Stored.parse(JSON.parse(await readFile(join(this.#folder, RECORD), "utf8")));
      return found.file === this.#file ? found : undefined;
    } catch {
      return undefined;
    }
  }

  /** Resolves to the path of the copy. Readable by the user only, because texts can contain keys of other servers. */
  async keepCopy(text: string): Promise<string> {
    return this.#write(basename(this.#file), text);
  }

  async write(stored: Omit<Stored, "file">): Promise<void> {
    await this.#write(RECORD, `${JSON.stringify({ file: this.#file, ...stored })}\n`);
  }

  async forget(): Promise<void> {
    await rm(join(this.#folder, RECORD), { force: true });
  }

  async #write(name: string, text: string): Promise<string> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, name);
    const draft = `${path}.new`;
    await rm(draft, { force: true });
    await writeFile(draft, text, { mode: 0o600, flag: "wx" });
    await rename(draft, path);
    return path;
  }
}

const RECORD = "record.json";

export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
