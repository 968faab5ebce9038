import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { focusHeading, keepFocus } from "../state/focus.ts";
import { Problem } from "../parts/problem.tsx";
import { hrefOf, route } from "../state/route.ts";
import type { ViewName } from "../state/views.ts";
import { SessionsView } from "../views/sessions.tsx";
import { SessionView } from "../views/session.tsx";
import { StartView } from "../views/start.tsx";
import { ApprovalsView } from "../views/approvals.tsx";
import { NotFound } from "../views/not-found.tsx";

/** View of the current address. Calls `focusHeading` when the address changes, so that screen readers start at the new view. */
export function CurrentView() {
  const at = hrefOf(route.value);
  const beforeRef = useRef(at);
  useEffect(() => {
    if (beforeRef.current === at) return;
    beforeRef.current = at;
    const main = document.querySelector("main");
    // The view may have set the focus already.
    if (!main || (main !== document.activeElement && main.contains(document.activeElement))) return;
    focusHeading();
  }, [at]);
  useEffect(keepFocus, []);
  return <View />;
}

function View() {
  const at = route.value;
  if (at.view === "session") return <SessionView key={at.id} id={at.id} />;
  if (at.view === "missing") return <NotFound what="Page" why="The console has no page at this address." />;
  const Shown = VIEW_COMPONENTS[at.view];
  return <Shown />;
}

const VIEW_COMPONENTS: Readonly<Record<ViewName, ComponentType>> = {
  sessions: SessionsView,
  approvals: ApprovalsView,
  usage: LazyUsage,
  start: StartView,
};

/** Loads `UsageView` on demand, because the chart library is most of the page's code. */
function LazyUsage() {
  const [Usage, setUsage] = useState<ComponentType>();
  const [problem, setProblem] = useState<unknown>();
  const load = () => {
    setProblem(undefined);
    import("../views/usage.tsx").then(({ UsageView }) => setUsage(() => UsageView), setProblem);
  };
  useEffect(load, []);
  if (Usage) return <Usage />;
  if (problem === undefined)
    return (
      <p class="soft" role="status">
        Loading…
      </p>
    );
  return (
    <Problem
      of={new Error("The server did not answer, or runs another version now.")}
      what="This view could not be loaded"
    >
      <button type="button" onClick={() => location.reload()}>
        Reload the page
      </button>
    </Problem>
  );
}
