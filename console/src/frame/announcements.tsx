import { useEffect, useRef, useState } from "preact/hooks";
import type { PendingRequest } from "../../../src/console/wire.ts";
import { truncateLine, displayLine } from "../parts/text.ts";
import { requests } from "../state/live.ts";
import { hrefOf, route } from "../state/route.ts";
import styles from "./frame.module.css";

const SHOWN_MS = 8000;

/** Announces each new request for `SHOWN_MS`. The count in the header (`OpenCount`) stays as long as requests are open. */
export function Announcements() {
  const arrived = useNewRequest();
  const isOpen = arrived && requests.value.some((request) => idOf(request) === idOf(arrived));
  // Visually hidden if the current view shows the request anyway.
  const at = route.value;
  const isSeen = at.view === "approvals" || (at.view === "session" && at.id === arrived?.sessionId);
  return (
    <div role="status" class={styles["announcement"]}>
      {arrived && isOpen && (
        <p class={isSeen ? "visually-hidden" : undefined}>
          <span>{announcementText(arrived)}</span> <a href={hrefOf({ view: "approvals" })}>Show</a>
        </p>
      )}
    </div>
  );
}

/** Returns the last request to arrive, until `SHOWN_MS` after its arrival. */
function useNewRequest(): PendingRequest | undefined {
  const [arrived, setArrived] = useState<PendingRequest>();
  const open = requests.value;
  const initialRef = useRef(open);
  const knownRef = useRef<ReadonlySet<string>>(undefined);
  useEffect(() => {
    // Before the server's first answer, nothing is known. All requests of that answer count as known.
    if (open === initialRef.current) return;
    const before = knownRef.current;
    knownRef.current = new Set(open.map(idOf));
    const news = before && open.findLast((request) => !before.has(idOf(request)));
    if (news) setArrived(news);
  }, [open]);
  useEffect(() => {
    const timer = setTimeout(() => setArrived(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [arrived]);
  return arrived;
}

function idOf({ sessionId, requestId }: PendingRequest): string {
  return `${sessionId} ${requestId}`;
}

function announcementText({ type, toolName, title }: PendingRequest): string {
  const where = title === "" ? "A session" : `“${truncateLine(title, 60)}”`;
  if (type === "question") return `${where} asks a question.`;
  if (toolName === "Verification") return `${where} asks to verify its work with commands.`;
  return type === "plan" ? `${where} has a plan to approve.` : `${where} asks to use ${displayLine(toolName)}.`;
}
