import { effect, signal } from "@preact/signals";
import type { PendingRequest } from "../../../src/console/wire.ts";
import { requests } from "../state/live.ts";
import { hrefOf } from "../state/route.ts";
import { escapeInvisible } from "./words/invisible.ts";
import { keyOf } from "./words/shown.ts";

/** Browser notifications of new requests. Off by default. */

const NAME = "claude-agents-mcp console notices";

export type Notices = "off" | "on" | "blocked" | "unknown";

export const notices = signal<Notices>(whatHolds());

function whatHolds(): Notices {
  if (!("Notification" in globalThis)) return "unknown";
  if (Notification.permission === "denied") return "blocked";
  return Notification.permission === "granted" && localStorage.getItem(NAME) === "on" ? "on" : "off";
}

export async function switchOn(): Promise<void> {
  const permission = await Notification.requestPermission();
  if (permission === "granted") localStorage.setItem(NAME, "on");
  notices.value = whatHolds();
}

export function switchOff(): void {
  localStorage.removeItem(NAME);
  notices.value = whatHolds();
}

let known: ReadonlySet<string> = new Set();

/** Notifies of new `requests` while the page does not have the focus. */
export function startNotifications(): void {
  effect(() => {
    const open = requests.value;
    const isNew = open.filter((request) => !known.has(keyOf(request)));
    known = new Set(open.map(keyOf));
    if (notices.value === "on" && !document.hasFocus()) for (const request of isNew) notify(request);
  });
}

/** Names the session and the tool, never the input, because others may see the screen. */
function notify(request: PendingRequest): void {
  const { title, toolName } = request;
  try {
    const notice = new Notification(escapeInvisible(title === "" ? "Claude Code" : title), {
      body: `Waiting for your approval: ${escapeInvisible(toolName)}`,
      tag: keyOf(request),
    });
    notice.addEventListener("click", () => {
      focus();
      location.hash = hrefOf({ view: "approvals" });
      notice.close();
    });
  } catch {
    // Chrome on Android has `Notification`, but allows only service workers to show notifications.
    notices.value = "unknown";
  }
}
