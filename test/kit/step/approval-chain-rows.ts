import type { SessionStatus } from "../../../src/domain/session.ts";
import type { InputName, StateName } from "./cases.ts";

/** Rows of `TABLE` (rows.ts): a request on its way through the approval chain. */
export const APPROVAL_CHAIN_ROWS: Partial<Record<StateName, [InputName, told: string, SessionStatus][]>> = {
  "asking the user": [
    ["allow, by the user", "permission.answered(allow user) answer:allow ok", "running"],
    ["allow, by the console", "PERMISSION_DENIED", "waiting_permission"],
    ["allow", "PERMISSION_DENIED", "waiting_permission"],
    ["deny", "permission.answered(deny caller) answer:deny ok", "running"],
    ["user unreachable", "request.passed(user caller unreachable) ok", "waiting_permission"],
    ["user dismisses", "request.passed(user caller dismissed) ok", "waiting_permission"],
    ["caller unreachable", "ok", "waiting_permission"],
    ["user denies, to say why", "ok", "waiting_permission"],
    ["tick when due", "request.passed(user caller time)", "waiting_permission"],
  ],
  "asking the user, seen": [
    ["user unreachable", "ok", "waiting_permission"],
    ["user unattended", "request.passed(user caller unattended) ok", "waiting_permission"],
    ["user dismisses", "request.passed(user caller dismissed) ok", "waiting_permission"],
    ["tick when due", "request.passed(user caller time)", "waiting_permission"],
  ],
  "asking the caller after the user": [
    ["allow", "permission.answered(allow caller) answer:allow ok", "running"],
    ["allow, by the user", "permission.answered(allow user) answer:allow ok", "running"],
    ["user unreachable", "ok", "waiting_permission"],
    ["caller unreachable", "permission.answered(deny rule) answer:deny ok", "running"],
    ["tick when due", "permission.answered(deny timeout) answer:deny", "running"],
  ],
  "asking what a caller may not": [
    ["allow", "PERMISSION_DENIED", "waiting_permission"],
    ["user dismisses", "permission.answered(deny rule) answer:deny ok", "running"],
    ["tick when due", "permission.answered(deny timeout) answer:deny", "running"],
    ["asked", "permission.asked", "waiting_permission"],
  ],
};
