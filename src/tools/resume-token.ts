import { createHmac, timingSafeEqual } from "node:crypto";
import { AppError } from "../domain/error.ts";
import type { Principal } from "../domain/principal.ts";

/** Permission to resume sessions unknown to this server, and the secret for checking the caller's right. */
export interface DiskResume {
  readonly allowed: boolean;
  /** If `undefined`, no token is needed. */
  readonly secret: string | undefined;
}

/** Returns the HMAC-SHA256 over principal and session, in hex; `undefined` without a secret. */
export function resumeToken({ secret }: DiskResume, principal: Principal, sessionId: string): string | undefined {
  if (secret === undefined) return undefined;
  return createHmac("sha256", secret).update(`${principal}\n${sessionId}`).digest("hex");
}

/** Throws SESSION_NOT_FOUND if disk resume is off, PERMISSION_DENIED without the right token. */
export function checkDiskResume(
  policy: DiskResume,
  principal: Principal,
  { sessionId, token }: { sessionId: string; token: string | undefined },
): void {
  if (!policy.allowed) {
    const problem = `There is no session ${sessionId}, and resuming sessions from disk is not allowed here.`;
    const advice =
      "List the sessions with claude_code_session; the operator allows it with CLAUDE_CODE_MCP_ALLOW_DISK_RESUME=1.";
    throw new AppError("SESSION_NOT_FOUND", `${problem} ${advice}`, { sessionId });
  }
  if (policy.secret === undefined) return;
  if (token !== undefined && !isWrongToken(policy, principal, { sessionId, token })) return;
  const problem = token === undefined ? "A resumeToken is required" : "The resumeToken is wrong";
  const advice = "Pass the one that claude_code or claude_code_reply returned for this session.";
  throw new AppError("PERMISSION_DENIED", `${problem} to resume a session from disk. ${advice}`, { sessionId });
}

/** Always false without a secret, because no token is needed. */
export function isWrongToken(
  policy: DiskResume,
  principal: Principal,
  { sessionId, token }: { sessionId: string; token: string },
): boolean {
  const right = resumeToken(policy, principal, sessionId);
  return right !== undefined && !isSame(token, right);
}

/** Compares in constant time. */
function isSame(given: string, right: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(right)];
  return a.length === b.length && timingSafeEqual(a, b);
}
