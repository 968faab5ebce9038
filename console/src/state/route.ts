import { signal } from "@preact/signals";

/** Where the page is, as the part behind # says. */

export type Route =
  { readonly view: "sessions" | "waiting" | "numbers" | "start" } | { readonly view: "session"; readonly id: string };

export const route = signal<Route>(routeOf(location.hash));

addEventListener("hashchange", () => {
  route.value = routeOf(location.hash);
});

export function hrefOf(to: Route): string {
  return to.view === "session" ? `#/sessions/${encodeURIComponent(to.id)}` : `#/${to.view}`;
}

export function go(to: Route): void {
  location.hash = hrefOf(to);
}

function routeOf(hash: string): Route {
  const [, view = "", id = ""] = hash.replace(/\?.*$/, "").split("/");
  if (view === "sessions" && id !== "") return { view: "session", id: decodeURIComponent(id) };
  return view === "waiting" || view === "numbers" || view === "start" ? { view } : { view: "sessions" };
}
