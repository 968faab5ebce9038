import { hrefOf } from "../state/route.ts";
import { useTitle } from "../state/title.ts";
import view from "./view.module.css";

interface Missing {
  readonly what: string;
  readonly why: string;
}

/** Replaces a view whose address leads nowhere. */
export function NotFound({ what, why }: Missing) {
  const title = `${what} not found`;
  useTitle(title);
  return (
    <div class={view["view"]}>
      <header class={view["head"]}>
        <h1>{title}</h1>
      </header>
      <p>{why}</p>
      <p>
        <a href={hrefOf({ view: "sessions" })}>All sessions</a>
      </p>
    </div>
  );
}
