import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import type { Principal, Scope } from "../domain/principal.ts";
import { aboutOf } from "../engine/actions/audit.ts";

/** Who did what, and what came of it. Never what was said: prompts and inputs may hold anything. */
export interface AuditEntry extends JsonObject {
  readonly principal: Principal;
  readonly tool: string;
  /** "ok", the code that it was refused with, or what came of a query: "begun" first, then "ok" or how else it ended. */
  readonly outcome: string;
}

/** Takes down an entry; never throws. */
export type Audit = (entry: AuditEntry) => void;

/** What may be told of an answer. */
const Answer = z.object({ sessionId: z.string().exactOptional(), allowBypass: z.boolean().exactOptional() });
const CODE = z.object({ code: z.string() });

interface AuditedCall {
  readonly call: { readonly principal: Principal; readonly client: { readonly name?: string | undefined } };
  readonly raw: unknown;
  readonly tool: string;
  readonly scope: Scope;
}

/** The entry of a call of a tool with these arguments; undefined when it has only read, unless that was refused. */
export function entryOf(
  { call, raw, scope, tool }: AuditedCall,
  { isError, outcome: ended, structured }: { isError: boolean; outcome?: string; structured: JsonObject },
): AuditEntry | undefined {
  const about = aboutOf(raw);
  const outcome = ended ?? (isError ? (CODE.safeParse(structured).data?.code ?? "error") : "ok");
  if (!isError && scope === "read") return undefined;
  const { client, principal } = call;
  return {
    principal,
    ...(client.name !== undefined && { client: client.name }),
    tool,
    ...about,
    ...Answer.safeParse(structured).data,
    outcome,
  };
}
