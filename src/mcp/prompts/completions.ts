import { z } from "zod";
import type { Caller } from "../../domain/principal.ts";
import type { SessionRecord } from "../../engine/ports.ts";
import type { ToolDeps } from "../../tools/define.ts";

/**
 * Completions of an argument. Contain only values that sessions of this principal have reported, and folders that the operator
 * allows the principal.
 */

export type ArgumentKind = "session" | "model" | "agent" | "skill" | "folder";

export interface CompletionInput {
  readonly kind: ArgumentKind;
  /** The input so far. */
  readonly text: string;
  /** Working directory of the future session, if known: agents and skills depend on the folder. */
  readonly cwd: string | undefined;
}

export interface Completion {
  readonly values: string[];
  /** Missing if more sessions may match than were read. */
  readonly total?: number;
  readonly hasMore: boolean;
}

/** Maximum number of values in MCP. */
const MAX_VALUES = 100;
/** Maximum number of sessions searched, newest first. */
const MAX_SESSIONS = 500;
/** Maximum number of sessions whose log is read. */
const MAX_LOGS = 5;

export async function complete(
  { cwd, kind, text }: CompletionInput,
  caller: Caller,
  deps: ToolDeps,
): Promise<Completion> {
  if (!caller.scopes.includes("read")) return completion([]);
  const engine = deps.engine.forCaller(caller);
  const { principal } = caller;
  if (kind === "agent" || kind === "skill") {
    const query = { principal, limit: MAX_LOGS };
    const near = cwd === undefined ? [] : await engine.list({ ...query, cwd });
    const records = near.length > 0 ? near : await engine.list(query);
    const reported = await Promise.all(records.map(async (record) => readReported(record, kind, deps)));
    return completion(unique(reported.flat()).filter((name) => hasPrefix(name, text)));
  }
  const records = await engine.list({ principal, limit: MAX_SESSIONS });
  const isAll = records.length < MAX_SESSIONS;
  if (kind === "session") {
    const ids = records.filter((record) => matchesSession(record, text)).map(({ id }) => id);
    return completion(ids, isAll);
  }
  if (kind === "model") {
    return completion(
      unique(records.flatMap(modelsOf)).filter((name) => hasPrefix(name, text)),
      isAll,
    );
  }
  const used = unique(records.map(({ spec }) => spec.cwd)).filter((folder) => folder.startsWith(text));
  // Lists folders only for callers who may start sessions.
  const below = caller.scopes.includes("run") ? await deps.folders(principal, text) : [];
  return completion(unique([...used, ...below]), isAll);
}

function completion(found: readonly string[], isAll = true): Completion {
  const values = found.slice(0, MAX_VALUES);
  return { values, ...(isAll && { total: found.length }), hasMore: values.length < found.length || !isAll };
}

/** True if `text` begins the id, or each of its words begins a word of the title. */
function matchesSession({ id, spec, title = spec.title ?? "" }: SessionRecord, text: string): boolean {
  if (hasPrefix(id, text)) return true;
  const words = title.toLowerCase().split(/\s+/);
  const asked = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  return asked.every((word) => words.some((each) => each.startsWith(word)));
}

/** Models that the session was told to use, and the model reported by Claude Code. */
function modelsOf({ spec, state }: SessionRecord): string[] {
  return [state.reported.model, state.chosen.model, spec.model].filter((model) => model !== undefined);
}

const Init = z.object({
  type: z.literal("system"),
  subtype: z.literal("init"),
  agents: z.array(z.string()).optional().catch(undefined),
  skills: z.array(z.string()).optional().catch(undefined),
});

/** Number of events in which a process reports its agents and skills, because `init` is among the first messages. */
const INIT_EVENTS = 50;

async function readReported({ id, principal }: SessionRecord, kind: "agent" | "skill", { engine }: ToolDeps) {
  const events = await engine.read(principal, id, 1, INIT_EVENTS).catch(() => []);
  const inits = events.flatMap((event) =>
    event.type === "message" ? (Init.safeParse(event.data.message).data ?? []) : [],
  );
  const [init] = inits;
  return (kind === "agent" ? init?.agents : init?.skills) ?? [];
}

function hasPrefix(name: string, text: string): boolean {
  return name.toLowerCase().startsWith(text.toLowerCase());
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
