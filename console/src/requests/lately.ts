import { useEffect, useState } from "preact/hooks";
import type { Decided, RequestList } from "../../../src/console/wire.ts";
import { get } from "../net/api.ts";
import { connection } from "../state/live.ts";

/** What was decided last. Asked for anew whenever `openKeys` change: something was decided then. */
export function useDecided(openKeys: string) {
  const [decided, setDecided] = useState<readonly Decided[]>();
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
