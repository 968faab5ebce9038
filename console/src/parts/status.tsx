import type { SessionStatus } from "../../../src/domain/session.ts";
import { STATUS_WORDS } from "./status-words.ts";
import { classNames } from "./class-names.ts";
import styles from "./status.module.css";

/** Status as a word with a color, and a shape for users who cannot see colors. */
export function Status({ status }: { readonly status: SessionStatus }) {
  return (
    <span class={classNames(styles, "status", status)}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        {SHAPES[status]}
      </svg>
      {STATUS_WORDS[status]}
    </span>
  );
}

const RING = <circle cx="8" cy="8" r="6" />;

const SHAPES = {
  running: (
    <>
      <circle class={styles["track"]} cx="8" cy="8" r="6" />
      <path class={styles["turns"]} d="M8 2a6 6 0 0 1 6 6" />
    </>
  ),
  waiting_permission: (
    <>
      {RING}
      <path d="M6.5 5.5v5M9.5 5.5v5" />
    </>
  ),
  idle: RING,
  error: (
    <>
      <path d="M8 2l6.5 11.5h-13z" />
      <path d="M8 6.5v3M8 11.5v.1" />
    </>
  ),
  cancelled: (
    <>
      {RING}
      <path d="M3.8 12.2l8.4-8.4" />
    </>
  ),
  closed: <rect x="3" y="3" width="10" height="10" rx="2" />,
} as const;
