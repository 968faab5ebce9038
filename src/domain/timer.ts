/** Longest delay that a timer of Node accepts, ms; a longer one fires at once. */
export const MAX_TIMER_MS = 2_147_483_647;
