import { renameSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";

/** File beside a shim's socket that lists the processes ended by the shim unasked, with the reason. */

export interface EndedProcess {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /** Sentence for people. */
  readonly why: string;
}

export interface EndedShim {
  /** Identity of the shim. */
  readonly pid: number;
  readonly startedAt: string;
  readonly processes: readonly EndedProcess[];
}

export const ENDED_SUFFIX = ".ended";

export class EndedRecord {
  readonly #file: string;
  readonly #identity: Pick<EndedShim, "pid" | "startedAt">;
  readonly #processes: EndedProcess[] = [];

  /** `socket`: path of the shim's socket. */
  constructor(socket: string, identity: Pick<EndedShim, "pid" | "startedAt">) {
    this.#file = `${socket}${ENDED_SUFFIX}`;
    this.#identity = identity;
  }

  /** Writes synchronously, because the shim is about to end. */
  add(id: string, why: string): void {
    this.#processes.push({ id, at: new Date().toISOString(), why });
    const draft = `${this.#file}.${String(this.#identity.pid)}`;
    try {
      writeFileSync(draft, JSON.stringify({ ...this.#identity, processes: this.#processes }), { mode: 0o600 });
      renameSync(draft, this.#file);
    } catch {
      // Disk full or folder deleted. The shim's log may have the reason.
    }
  }
}

/** Resolves to `undefined` if `file` does not exist, or is not of a shim. */
export async function readEnded(file: string): Promise<EndedShim | undefined> {
  try {
    const parsed: unknown = JSON.parse(await readFile(file, "utf8"));
    const { pid, processes, startedAt } = fieldsOf(parsed);
    if (typeof pid !== "number" || typeof startedAt !== "string" || !Array.isArray(processes)) return undefined;
    return { pid, startedAt, processes: processes.flatMap((each: unknown) => processIn(each) ?? []) };
  } catch {
    return undefined;
  }
}

function processIn(value: unknown): EndedProcess | undefined {
  const { at, id, why } = fieldsOf(value);
  return typeof at === "string" && typeof id === "string" && typeof why === "string" ? { at, id, why } : undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
