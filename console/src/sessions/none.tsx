import { may } from "../state/me.ts";
import { hrefOf } from "../state/route.ts";

/** What to do where there are no sessions yet. */
export function NoneAtAll() {
  return (
    <div class="none">
      <h2>No sessions yet</h2>
      <p>
        A session is a task that Claude Code works on in the background. It continues when you leave; this page shows
        its progress and its requests.
      </p>
      {may("run") ? (
        <p>
          <a class="button primary" href={hrefOf({ view: "start" })}>
            Start a session
          </a>
        </p>
      ) : (
        <p>Sessions that your MCP client starts appear here.</p>
      )}
    </div>
  );
}

export function NoneFits({ clear }: { readonly clear: () => void }) {
  return (
    <div class="none">
      <h2>No matching sessions</h2>
      <p>No session matches the search and the filters above.</p>
      <p>
        <button type="button" onClick={clear}>
          Clear all filters
        </button>
      </p>
    </div>
  );
}
