import type { AnswerBody, LinkedRequest } from "../../../src/console/wire.ts";
import { ApiProblem, post, readJson, send } from "../net/api.ts";

/**
 * Page of one request, opened by a link that a client has shown to its user: `#link=...`. Needs no sign-in, and has no other
 * view. The key is kept for the tab alone, so that a reload shows the request again.
 */

const PREFIX = "#link=";
const ADDRESS = "#/request";
const NAME = "claude-agents-mcp request page";

/** True if the tab shows one request, and not the console. */
export const isAlone = location.hash.startsWith(PREFIX) || location.hash === ADDRESS;

/** Removes the secret from the address bar and the history at once. Call once, before anything reads the address. */
export function startRequestPage(): void {
  if (location.hash.startsWith(PREFIX)) {
    secret = location.hash.slice(PREFIX.length);
    history.replaceState(null, "", ADDRESS);
  }
  // A link pasted into an open tab only changes the hash.
  addEventListener("hashchange", () => {
    if (location.hash.startsWith(PREFIX)) location.reload();
  });
}

/** Secret of a link that was not exchanged yet. */
let secret: string | undefined;

const CLOSED = {
  error: "link_used",
  message: "The link of this page was opened before, in another tab. Answer on that page, or go back to your client.",
};

/** Loads the request; the first call exchanges the link. Throws `ApiProblem` if the request is not open. */
export async function loadRequest(): Promise<LinkedRequest> {
  if (secret !== undefined) {
    const { id, key } = await post<{ id: string; key: string }>("links", { link: secret });
    sessionStorage.setItem(NAME, `${id} ${key}`);
    secret = undefined;
  }
  return readJson(await sendToPage({}));
}

/** Sends the answer to the request of this page. */
export async function answerAlone(body: AnswerBody): Promise<void> {
  await sendToPage({ method: "POST", body: JSON.stringify(body) });
}

async function sendToPage(init: RequestInit): Promise<Response> {
  const [id, key] = sessionStorage.getItem(NAME)?.split(" ") ?? [];
  if (id === undefined || key === undefined) throw new ApiProblem(410, CLOSED);
  return send(`links/${id}`, { ...init, headers: { "content-type": "application/json", "x-request-key": key } });
}
