import type { ComponentChildren } from "preact";
import { wordsOf } from "../net/api.ts";
import { displayText } from "./text.ts";

interface Shown {
  /** Whatever was thrown; nothing is shown for undefined. */
  readonly of: unknown;
  /** What was to be done: "The session was not started". */
  readonly what?: string;
  /** Buttons that help. */
  readonly children?: ComponentChildren;
}

/** What has gone wrong. It is read out when it appears. */
export function Problem({ of: error, what, children }: Shown) {
  if (error === undefined) return null;
  return (
    <div class="problem" role="alert">
      <p>
        {what !== undefined && <strong>{what}. </strong>}
        {displayText(wordsOf(error))}
      </p>
      {children}
    </div>
  );
}
