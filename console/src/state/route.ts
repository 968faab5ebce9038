import { batch, signal } from "@preact/signals";
import { isViewName, type ViewName } from "./views.ts";

/** Where the page is, as the part behind # says. */

export type Route = { readonly view: ViewName } | { readonly view: "session"; readonly id: string };

export const route = signal<Route>(routeOf(location.hash));
/** What the view is asked to show, behind a ? in the hash: its filters. */
export const query = signal<URLSearchParams>(queryOf(location.hash));

// Where one was before, views know better than the browser, which does not wait for what they load.
history.scrollRestoration = "manual";

addEventListener("hashchange", () => {
  const to = routeOf(location.hash);
  const isElsewhere = hrefOf(to) !== hrefOf(route.value);
  batch(() => {
    if (isElsewhere) route.value = to;
    query.value = queryOf(location.hash);
  });
  if (isElsewhere) scrollTo(0, 0);
});

export function hrefOf(to: Route): string {
  return to.view === "session" ? `#/sessions/${encodeURIComponent(to.id)}` : `#/${to.view}`;
}

export function go(to: Route): void {
  location.hash = hrefOf(to);
}

/** Changes what this view shows, in its place in the history: "back" leaves it. */
export function ask(asked: URLSearchParams): void {
  const text = asked.toString();
  history.replaceState(history.state, "", hrefOf(route.value) + (text === "" ? "" : `?${text}`));
  query.value = asked;
}

function routeOf(hash: string): Route {
  const [, view = "", id = ""] = hash.replace(/\?.*$/, "").split("/");
  if (view === "sessions" && id !== "") return { view: "session", id: decoded(id) };
  return { view: isViewName(view) ? view : "sessions" };
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
