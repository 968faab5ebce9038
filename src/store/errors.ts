import { AppError } from "../domain/error.ts";

/** Messages for the faults of a store: the problem, then the remedy. */
const MESSAGES = {
  busy: (file: string) =>
    `The store ${file} is locked by another process. End what holds it (a backup, a database tool, a stopped server) and try again.`,
  corrupt: (file: string) =>
    `The store ${file} is damaged. Restore it from a backup, or move it away together with its -wal and -shm files: then a new one is created.`,
  driver: (file: string) =>
    `The store ${file} cannot be opened: there is no SQLite. Use Node 22.13 or later, or run: claude-agents-mcp doctor --fix`,
  failed: (file: string) => `The store ${file} could not be read or written. Check the disk and try again.`,
  foreign: (file: string) =>
    `${file} is a database of another program. Name another file with --store or CLAUDE_CODE_MCP_STORE.`,
  full: (file: string) => `The disk of the store ${file} is full: nothing was saved. Free some space and try again.`,
  moved: (file: string) =>
    `The store ${file}, or ${file}-wal or ${file}-shm, was moved, replaced or deleted while it was in use: what was stored last may be missing. End all servers of this store and start again; leave its files alone while one runs.`,
  network: (file: string) =>
    `The store ${file} is on a network file system, where it cannot be kept safely. Name a file on a local disk with --store or CLAUDE_CODE_MCP_STORE.`,
  newer: (file: string) =>
    `The store ${file} was changed by a newer claude-agents-mcp than this one can work with. Update claude-agents-mcp.`,
  readonly: (file: string) =>
    `The store ${file} cannot be written. Make the file and its folder writable, or name another file with --store or CLAUDE_CODE_MCP_STORE.`,
} as const;

export type StoreFault = keyof typeof MESSAGES;

const LOSSES: ReadonlySet<StoreFault> = new Set(["moved", "newer"]);

/** Thrown if the store cannot carry out an operation. Nothing of the operation is stored. */
export class StoreError extends AppError {
  readonly fault: StoreFault;
  /** True if earlier data may be missing, or may no longer be changed by this server. */
  readonly isLoss: boolean;

  constructor(fault: StoreFault, file: string, cause?: unknown) {
    const why = cause instanceof Error ? ` (${cause.message})` : "";
    super("INTERNAL", MESSAGES[fault](file) + why, { cause });
    this.fault = fault;
    this.isLoss = LOSSES.has(fault);
  }
}
