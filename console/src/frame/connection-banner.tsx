import { useEffect, useRef, useState } from "preact/hooks";
import { retryNow } from "../net/backoff.ts";
import { connection } from "../state/live.ts";
import { classNames } from "../parts/class-names.ts";
import styles from "./frame.module.css";

/** Shortest outage to report, ms: a restarting server is back sooner. */
const UNREPORTED_MS = 1200;
const RECONNECTED_BANNER_MS = 4000;

/** Reports the loss of the connection and the reconnection. */
export function ConnectionBanner() {
  const [shown, show] = useState<"lost" | "back">();
  const wasLostRef = useRef(false);
  const state = connection.value;
  useEffect(() => {
    if (state === "connecting" || (state === "live" && !wasLostRef.current)) {
      show(undefined);
      return;
    }
    const isBack = state === "live";
    if (isBack) show("back");
    const timer = setTimeout(
      () => {
        wasLostRef.current = !isBack;
        show(isBack ? undefined : "lost");
      },
      isBack ? RECONNECTED_BANNER_MS : UNREPORTED_MS,
    );
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <>
      <div role="alert">
        {shown === "lost" && (
          <p class={classNames(styles, "banner", "banner-lost")}>
            The server does not answer. The page may be out of date; it keeps trying to reconnect.
            <button type="button" onClick={retryNow}>
              Try now
            </button>
          </p>
        )}
      </div>
      <div role="status">
        {shown === "back" && <p class={classNames(styles, "banner", "banner-back")}>The server is back.</p>}
      </div>
    </>
  );
}
