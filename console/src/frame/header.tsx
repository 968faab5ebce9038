import { Mark } from "../parts/mark.tsx";
import { requests } from "../state/live.ts";
import { may } from "../state/me.ts";
import { hrefOf, route, type Route } from "../state/route.ts";
import { VIEW_NAMES, VIEWS, type ViewName } from "../state/views.ts";
import { Account } from "./account.tsx";
import { classNames } from "../parts/class-names.ts";
import styles from "./frame.module.css";

/** Links that are available in every view. */
export function Header() {
  return (
    <header class={styles["bar"]}>
      <a class={styles["bar-name"]} href={hrefOf({ view: "sessions" })}>
        <Mark />
        claude-agents-mcp
      </a>
      <nav aria-label="Views">
        {TABS.map((name) => (
          <Tab key={name} to={name} />
        ))}
      </nav>
      <div class={styles["bar-end"]}>
        {may("run") && (
          <a
            class="button primary"
            href={hrefOf({ view: "start" })}
            aria-label="New session"
            aria-current={route.value.view === "start" ? "page" : undefined}
          >
            <span>
              New<span class={styles["bar-more"]}> session</span>
            </span>
          </a>
        )}
        <Account />
      </div>
    </header>
  );
}

const TABS = VIEW_NAMES.filter((name) => VIEWS[name].isTab);

function Tab({ to }: { readonly to: ViewName }) {
  return (
    <a class={styles["tab"]} href={hrefOf({ view: to })} aria-current={ariaCurrent(to, route.value)}>
      {VIEWS[to].name}
      {to === "approvals" && <OpenCount />}
    </a>
  );
}

/** `aria-current` of a tab. A session marks "Sessions" as "true", because the current page is not the list. */
function ariaCurrent(to: string, { view }: Route): "page" | "true" | undefined {
  if (view === to) return "page";
  return view === "session" && to === "sessions" ? "true" : undefined;
}

function OpenCount() {
  const waiting = requests.value.length;
  if (waiting === 0) return null;
  return (
    <span class={classNames(styles, "tab-count", "number")}>
      {waiting}
      <span class="visually-hidden"> open</span>
    </span>
  );
}
