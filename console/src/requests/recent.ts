import { useEffect, useState } from "preact/hooks";
import type { Decision, PendingRequest, RequestList } from "../../../src/console/wire.ts";
import { getDraft } from "./draft.ts";
import { focusOwnCard } from "./card-focus.ts";
import { decidedWords } from "./words/deciders.ts";
import { requestKey, CLOSED_SHOWN_MS, type Shown, updateShown } from "./words/shown-requests.ts";
import { get } from "../net/api.ts";
import { connection } from "../state/live.ts";

/** Open requests and, until the user could read the decision (`CLOSED_SHOWN_MS`), closed requests. Oldest first. */
export function useShownRequests(
  open: readonly PendingRequest[],
  decided: readonly Decision[] | undefined,
): readonly Shown[] {
  const [shown, setShown] = useState<readonly Shown[]>([]);
  useEffect(() => {
    const look = () => setShown((before) => updateShown(before, open, Date.now()));
    look();
    const timer = setTimeout(look, CLOSED_SHOWN_MS + 100);
    return () => clearTimeout(timer);
  }, [open]);
  useEffect(() => {
    for (const { goneAt, request } of shown) if (goneAt !== undefined) showOutcome(request, decided);
  }, [shown, decided]);
  return shown;
}

const GONE = "No longer open.";

/** Fills in `outcome` for decisions made elsewhere; `sendAnswer` sets `outcome` for the user's own. */
function showOutcome(request: PendingRequest, decided: readonly Decision[] = []): void {
  const { isSending, key, outcome } = getDraft(request);
  if (isSending.value || (outcome.value !== "" && outcome.value !== GONE)) return;
  const known = decided.find((each) => requestKey(each) === requestKey(request));
  focusOwnCard(key);
  outcome.value = known ? `${decidedWords(known)}.` : GONE;
}

/** Latest decisions. Reloads when `openKeys` changes, because a request was decided then. */
export function useRecentDecisions(openKeys: string) {
  const [decided, setDecided] = useState<readonly Decision[]>();
  const [problem, setProblem] = useState<unknown>();
  const isLive = connection.value === "live";
  useEffect(() => {
    let isOver = false;
    const load = async () => {
      try {
        const list = await get<RequestList>("requests");
        if (isOver) return;
        setDecided(list.decided);
        setProblem(undefined);
      } catch (error) {
        if (!isOver) setProblem(error);
      }
    };
    void load();
    return () => {
      isOver = true;
    };
  }, [openKeys, isLive]);
  return { decided, problem };
}
