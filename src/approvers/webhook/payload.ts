import type { NoticeType } from "./settings.ts";
import type { TurnEnded } from "../../domain/event.ts";
import type { JsonObject } from "../../domain/json.ts";
import { type PermissionRequest, type OpenRequest } from "../../domain/permission.ts";
import { limitFields } from "../../domain/standstill.ts";
import { fit } from "../../view/size.ts";
import { summaryOf } from "../../view/summary.ts";

/** Payload of a notice to the receiver; docs/approvals.md has the fields as a table. */

/** Maximum bytes of a tool's input. */
const INPUT_BYTES = 16_384;

export interface NoticeInfo {
  readonly id: string;
  readonly type: NoticeType;
  /** ms since the epoch */
  readonly at: number;
  readonly version: string;
  readonly session: { readonly id: string; readonly principal: string; readonly title?: string; readonly cwd: string };
}

/** Subject of a notice: a request, or an ended turn. */
export type NoticeSubject =
  | { readonly request: PermissionRequest; readonly open: OpenRequest; readonly answerUrl?: string }
  | { readonly ended: TurnEnded };

export type Mask = (fields: JsonObject) => JsonObject;

export interface Payload {
  readonly payload: JsonObject;
  /** True if `request.input` is sent unchanged, neither cut nor masked. */
  readonly whole: boolean;
}

/** Builds the payload of a notice, without secrets. */
export function buildPayload(
  { at, id, session, type, version }: NoticeInfo,
  matter: NoticeSubject,
  mask: Mask,
): Payload {
  const head = { id, type, createdAt: new Date(at).toISOString(), server: { version }, session: mask(session) };
  if ("ended" in matter) return { payload: { ...head, turn: turnFields(matter.ended) }, whole: true };
  const { request } = matter;
  const masked = mask(request.input);
  const { cut, value: input } = fit(masked, INPUT_BYTES);
  const payload = { ...head, ...requestFields(matter, { masked, cut, input }) };
  return { payload, whole: !cut && JSON.stringify(masked) === JSON.stringify(request.input) };
}

interface ShownInput {
  readonly masked: JsonObject;
  readonly cut: boolean;
  readonly input: JsonObject;
}

function requestFields(
  { answerUrl, request, open }: Extract<NoticeSubject, { request: PermissionRequest }>,
  { cut, input, masked }: ShownInput,
): JsonObject {
  const { requestId, risk, toolName } = request;
  const described = {
    requestId,
    toolName,
    summary: summaryOf(toolName, masked),
    input,
    ...(cut && { inputTruncated: true }),
    ...(risk && { risk }),
    approver: open.approver,
    expiresAt: new Date(open.expiresAt).toISOString(),
  };
  return { request: described, ...(answerUrl !== undefined && { answerUrl }) };
}

function turnFields({ costUsd, durationMs, errorSubtype, limit, outcome, turnId, warnings }: TurnEnded): JsonObject {
  const subtype = errorSubtype === undefined ? {} : { errorSubtype };
  const why = { ...subtype, ...limitFields(limit), ...(warnings && { warnings }) };
  return { turnId, outcome, ...why, costUsd, durationMs };
}
