import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import type { Principal, Scope } from "../domain/principal.ts";
import { describeAction } from "../engine/actions/audit.ts";

/** Line of the audit log. Never includes texts of the caller: prompts and inputs may contain secrets. */
export interface AuditEntry extends JsonObject {
  readonly principal: Principal;
  readonly tool: string;
  /** "ok" or the error code. A query has two entries: "begun", then "ok" or the reason for another end. */
  readonly outcome: string;
}

/** Writes an entry; never throws. */
export type Audit = (entry: AuditEntry) => void;

/** Fields copied from an answer into its entry. */
const Answer = z.object({ sessionId: z.string().exactOptional(), allowBypass: z.boolean().exactOptional() });
const CODE = z.object({ code: z.string() });

interface AuditedCall {
  readonly call: { readonly principal: Principal; readonly client: { readonly name?: string | undefined } };
  readonly raw: unknown;
  readonly tool: string;
  readonly scope: Scope;
}

/** Returns the entry of a call with the arguments `raw`; `undefined` for a successful call with scope `read`. */
export function entryOf(
  { call, raw, scope, tool }: AuditedCall,
  { isError, outcome: ended, structured }: { isError: boolean; outcome?: string; structured: JsonObject },
): AuditEntry | undefined {
  const about = describeAction(raw);
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
