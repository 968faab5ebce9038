/** Limits and defaults of waiting calls: as long as the client tolerates. */

/** Limit for other clients, below the time limit of every client known to us, ms. */
const DEFAULT_MS = 45_000;
/**
 * Limit for Claude Code, which tolerates a call for hours, ms. In its terminal the model continues during the call, and the
 * answer wakes the model.
 */
const CLAUDE_CODE_MS = 1_800_000;
const CLAUDE_CODE = "claude-code";

export interface ToolLimits {
  /** Maximum time for which a call may block, ms. */
  readonly maxWaitMs: number;
  /** Set if the client tolerates a call for as long as the server may block: `waitMs` then defaults to `maxWaitMs`. */
  readonly waitsByDefault?: boolean;
  /** Set if the client follows tasks by itself. */
  readonly followsTasks?: boolean;
  /** Set by `--allow-disk-resume`. */
  readonly allowsDiskResume?: boolean;
}

/** Client as described by itself. */
export interface WaitingClient {
  /** Name in `clientInfo`. */
  readonly name?: string | undefined;
  /** Capabilities of a request of the 2026 era. */
  readonly capabilities?: unknown;
}

/** `setMs`, set by the operator, applies to every client. */
export function waitLimits(setMs: number | undefined, { capabilities, name }: WaitingClient = {}): ToolLimits {
  const isLong = name === CLAUDE_CODE;
  const maxWaitMs = setMs ?? (isLong ? CLAUDE_CODE_MS : DEFAULT_MS);
  const tasks = declaresTasks(capabilities);
  // Without forms, a model has to look for requests itself.
  return { maxWaitMs, waitsByDefault: isLong && !tasks, followsTasks: tasks && showsForms(capabilities) };
}

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

export function declaresTasks(capabilities: unknown): boolean {
  return fieldOf(fieldOf(capabilities, "extensions"), TASKS_EXTENSION) !== undefined;
}

/** True if the client can show forms. An empty capability means forms; a capability with `url` alone does not. */
export function showsForms(capabilities: unknown): boolean {
  const elicitation = fieldOf(capabilities, "elicitation");
  if (typeof elicitation !== "object" || elicitation === null) return false;
  return fieldOf(elicitation, "form") !== undefined || fieldOf(elicitation, "url") === undefined;
}

function fieldOf(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
}
