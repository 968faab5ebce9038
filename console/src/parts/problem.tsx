import type { ComponentChildren } from "preact";
import { messageOf } from "../net/api.ts";
import { displayText } from "./text.ts";

interface Shown {
  /** Any thrown value; `undefined` shows nothing. */
  readonly of: unknown;
  /** Failed action: "The session was not started". */
  readonly what?: string;
  /** Buttons for a remedy. */
  readonly children?: ComponentChildren;
}

/** Error message, announced by screen readers. */
export function Problem({ of: error, what, children }: Shown) {
  if (error === undefined) return null;
  return (
    <div class="problem" role="alert">
      <p>
        {what !== undefined && <strong>{what}. </strong>}
        {displayText(messageOf(error))}
      </p>
      {children}
    </div>
  );
}
