import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import type { Principal } from "../domain/principal.ts";

/** Who did what, and what came of it. Never what was said: prompts and inputs may hold anything. */
export interface AuditEntry extends JsonObject {
  readonly principal: Principal;
  readonly tool: string;
  /** "ok", or the code that it was refused with. */
  readonly outcome: string;
}

/** Takes down an entry; never throws. */
export type Audit = (entry: AuditEntry) => void;

/** Actions that change nothing: they are taken down when somebody was refused. */
const READING = new Set(["poll", "get", "list", "diff", "usage", "task_output", "get_config"]);
/** What may be told of a call, and of its answer. */
const Call = z.object({
  action: z.string().max(50).exactOptional().catch(""),
  sessionId: z.string().max(100).exactOptional().catch(""),
  requestId: z.string().max(200).exactOptional().catch(""),
  decision: z.string().max(50).exactOptional().catch(""),
  permissionMode: z.string().max(50).exactOptional().catch(""),
});
const Answer = z.object({ sessionId: z.string().exactOptional(), allowBypass: z.boolean().exactOptional() });
const CODE = z.object({ code: z.string() });

/** The entry of a call of a tool with these arguments; undefined when it has only read. */
export function entryOf(
  { principal, raw, tool }: { principal: Principal; raw: unknown; tool: string },
  { isError, structured }: { isError: boolean; structured: JsonObject },
): AuditEntry | undefined {
  const about = Call.safeParse(raw).data ?? {};
  const outcome = isError ? (CODE.safeParse(structured).data?.code ?? "error") : "ok";
  if (!isError && READING.has(about.action ?? "")) return undefined;
  return { principal, tool, ...about, ...Answer.safeParse(structured).data, outcome };
}
