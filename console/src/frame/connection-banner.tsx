import { useEffect, useRef, useState } from "preact/hooks";
import { askNow } from "../net/pause.ts";
import { connection } from "../state/live.ts";

/** A server that is only started anew is back before anybody needs to know. */
const UNNOTICED_MS = 1200;
const REJOICE_MS = 4000;

/** Says that the server is gone, and that it has come back. */
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
      isBack ? REJOICE_MS : UNNOTICED_MS,
    );
    return () => clearTimeout(timer);
  }, [state]);
  return (
    <>
      <div role="alert">
        {shown === "lost" && (
          <p class="banner banner-lost">
            The server does not answer. What you see may be old; this page goes on trying.
            <button type="button" onClick={askNow}>
              Try now
            </button>
          </p>
        )}
      </div>
      <div role="status">{shown === "back" && <p class="banner banner-back">The server is back.</p>}</div>
    </>
  );
}
