import { may } from "../state/me.ts";
import { hrefOf } from "../state/route.ts";

/** What to do where there are no sessions yet. */
export function NoneAtAll() {
  return (
    <div class="none">
      <h2>No sessions yet</h2>
      <p>
        A session is one piece of work that Claude Code does in the background: it goes on when you leave, and this page
        shows what it does and what it asks.
      </p>
      {may("run") ? (
        <p>
          <a class="button primary" href={hrefOf({ view: "start" })}>
            Start a session
          </a>
        </p>
      ) : (
        <p>Those that your MCP client starts will be shown here.</p>
      )}
    </div>
  );
}

export function NoneFits({ clear }: { readonly clear: () => void }) {
  return (
    <div class="none">
      <h2>No session fits</h2>
      <p>Nothing matches the search and the filters above.</p>
      <p>
        <button type="button" onClick={clear}>
          Clear all filters
        </button>
      </p>
    </div>
  );
}
