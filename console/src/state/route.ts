import { batch, signal } from "@preact/signals";
import { isViewName, type ViewName } from "./views.ts";

/** Current view, read from the hash of the address. */

export type Route =
  | { readonly view: ViewName }
  | { readonly view: "session"; readonly id: string }
  /** Address without a known view. */
  | { readonly view: "missing"; readonly hash: string };

export const route = signal<Route>(routeOf(location.hash));
/** Filters of the view: the part of the hash after `?`. */
export const query = signal<URLSearchParams>(queryOf(location.hash));

/** Keeps `route` and `query` up to date. */
export function startRouting(): void {
  // The browser would restore the scroll position before the content is loaded; views restore the position themselves.
  history.scrollRestoration = "manual";
  addEventListener("hashchange", onHashChange);
}

function onHashChange(): void {
  const to = routeOf(location.hash);
  const isElsewhere = hrefOf(to) !== hrefOf(route.value);
  batch(() => {
    if (isElsewhere) route.value = to;
    query.value = queryOf(location.hash);
  });
  if (isElsewhere) scrollTo(0, 0);
}

export function hrefOf(to: Route): string {
  if (to.view === "missing") return to.hash;
  return to.view === "session" ? `#/sessions/${encodeURIComponent(to.id)}` : `#/${to.view}`;
}

export function go(to: Route): void {
  location.hash = hrefOf(to);
}

/** Replaces `query` in the current history entry, so that "back" leaves the view. */
export function replaceQuery(asked: URLSearchParams): void {
  const text = asked.toString();
  history.replaceState(history.state, "", hrefOf(route.value) + (text === "" ? "" : `?${text}`));
  query.value = asked;
}

function routeOf(hash: string): Route {
  const [, view = "", id = ""] = hash.replace(/\?.*$/, "").split("/");
  if (view === "sessions" && id !== "") return { view: "session", id: decoded(id) };
  if (view === "") return { view: "sessions" };
  return isViewName(view) ? { view } : { view: "missing", hash };
}

function queryOf(hash: string): URLSearchParams {
  return new URLSearchParams(/\?(.*)$/.exec(hash)?.[1] ?? "");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
