import type { NoticeType } from "../config/approvals/notify.ts";
import type { TurnEnded } from "../domain/event.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Ask, OpenAsk } from "../domain/permission.ts";
import { fit } from "../tools/present/size.ts";
import { summaryOf } from "../tools/present/summary.ts";

/** What the receiver is told; docs/approvals.md has it as a table. */

/** Of a tool's input so many bytes are sent. */
const INPUT_BYTES = 16_384;

export interface About {
  readonly id: string;
  readonly type: NoticeType;
  /** ms since the epoch */
  readonly at: number;
  readonly version: string;
  readonly session: { readonly id: string; readonly principal: string; readonly title?: string; readonly cwd: string };
}

/** What was asked, or what ended. */
export type Matter =
  { readonly ask: Ask; readonly open: OpenAsk; readonly answerUrl?: string } | { readonly ended: TurnEnded };

export type Mask = (fields: JsonObject) => JsonObject;

/** A notice as it is sent, without secrets. */
export function payloadOf({ at, id, session, type, version }: About, matter: Matter, mask: Mask): JsonObject {
  const head = { id, type, createdAt: new Date(at).toISOString(), server: { version }, session: mask(session) };
  return "ask" in matter ? { ...head, ...asked(matter, mask) } : { ...head, turn: turnOf(matter.ended) };
}

function asked({ answerUrl, ask, open }: Extract<Matter, { ask: Ask }>, mask: Mask): JsonObject {
  const { requestId, risk, toolName } = ask;
  const masked = mask(ask.input);
  const { cut, value: input } = fit(masked, INPUT_BYTES);
  const request = {
    requestId,
    toolName,
    summary: summaryOf(toolName, masked),
    input,
    ...(cut && { inputTruncated: true }),
    ...(risk && { risk }),
    expiresAt: new Date(open.expiresAt).toISOString(),
  };
  return { request, ...(answerUrl !== undefined && { answerUrl }) };
}

function turnOf({ costUsd, durationMs, errorSubtype, outcome, turnId }: TurnEnded): JsonObject {
  return { turnId, outcome, ...(errorSubtype !== undefined && { errorSubtype }), costUsd, durationMs };
}
