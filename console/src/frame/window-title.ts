import { useEffect } from "preact/hooks";
import { oneLine } from "../parts/plain.ts";
import { requests } from "../state/live.ts";
import { isStranger } from "../state/me.ts";
import { route } from "../state/route.ts";
import { title } from "../state/title.ts";
import { VIEWS } from "../state/views.ts";

/** "(2) Sessions · claude-agents-mcp": tabs show how much waits. */
export function useWindowTitle(): void {
  const waiting = requests.value.length;
  const { view } = route.value;
  const usual = view === "session" ? "Session" : VIEWS[view].name;
  const name = isStranger.value ? "Sign in" : oneLine(title.value ?? usual);
  const text = `${waiting > 0 ? `(${String(waiting)}) ` : ""}${name} · claude-agents-mcp`;
  useEffect(() => {
    document.title = text;
  }, [text]);
}
