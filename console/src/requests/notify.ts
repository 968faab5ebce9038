import { effect, signal } from "@preact/signals";
import type { PendingRequest } from "../../../src/console/wire.ts";
import { requests } from "../state/live.ts";
import { hrefOf } from "../state/route.ts";
import { escapeInvisible } from "./words/invisible.ts";
import { requestKey } from "./words/shown-requests.ts";

/** Browser notifications of new requests. Off by default. */

const NAME = "claude-agents-mcp console notices";

export type Notices = "off" | "on" | "blocked" | "unknown";

export const notices = signal<Notices>(readState());

function readState(): Notices {
  if (!("Notification" in globalThis)) return "unknown";
  if (Notification.permission === "denied") return "blocked";
  return Notification.permission === "granted" && localStorage.getItem(NAME) === "on" ? "on" : "off";
}

export async function switchOn(): Promise<void> {
  const permission = await Notification.requestPermission();
  if (permission === "granted") localStorage.setItem(NAME, "on");
  notices.value = readState();
}

export function switchOff(): void {
  localStorage.removeItem(NAME);
  notices.value = readState();
}

let known: ReadonlySet<string> = new Set();

/** Notifies of new `requests` while the page does not have the focus. */
export function startNotifications(): void {
  effect(() => {
    const open = requests.value;
    const isNew = open.filter((request) => !known.has(requestKey(request)));
    known = new Set(open.map(requestKey));
    if (notices.value === "on" && !document.hasFocus()) for (const request of isNew) notify(request);
  });
}

/** Names the session and the tool, never the input, because others may see the screen. */
function notify(request: PendingRequest): void {
  const { title, toolName } = request;
  try {
    const notice = new Notification(escapeInvisible(title === "" ? "Claude Code" : title), {
      body: `Waiting for your approval: ${escapeInvisible(toolName)}`,
      tag: requestKey(request),
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
