import { CALLER } from "../../../src/domain/approvals/answer-source.ts";

/** Clock of a turn that has just begun. */
export const TURN_CLOCK = { lastedMs: 0, ranMs: 0, silentMs: 0 };

/** Times of a request that was with the caller from the start, ms since the epoch. */
export const withCaller = (createdAt: number, expiresAt: number) => ({
  createdAt,
  expiresAt,
  approver: CALLER,
  approverSince: createdAt,
  approverDeadline: expiresAt,
  clock: { ageMs: 0, leftMs: expiresAt - createdAt, approverMs: 0, approverLeftMs: expiresAt - createdAt },
});
