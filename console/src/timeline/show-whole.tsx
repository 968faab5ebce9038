import { useContext, useState } from "preact/hooks";
import { messageOf } from "../net/api.ts";
import { EventWindowContext } from "./event-window.ts";
import styles from "./timeline.module.css";

/** Offers to load texts of `eventIds` that were cut. */
export function ShowWhole({ eventIds }: { readonly eventIds: readonly number[] }) {
  const eventWindow = useContext(EventWindowContext);
  const [state, setState] = useState<"" | "loading" | { readonly problem: string }>("");
  if (eventIds.length === 0) return null;
  const load = () => {
    setState("loading");
    Promise.all(eventWindow ? eventIds.map((id) => eventWindow.showWhole(id)) : []).then(
      () => setState(""),
      (error: unknown) => setState({ problem: messageOf(error) }),
    );
  };
  return (
    <p class={styles["cut"]}>
      Some text is not shown.{" "}
      <button type="button" class="link" onClick={load} disabled={state === "loading"}>
        {state === "loading" ? "Loading…" : "Show all"}
      </button>
      {typeof state === "object" && <span role="alert"> {state.problem}</span>}
    </p>
  );
}
