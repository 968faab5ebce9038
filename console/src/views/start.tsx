import "../style/start.css";
import { may } from "../state/me.ts";
import { StartForm } from "../start/start-form.tsx";
import { hrefOf } from "../state/route.ts";

/** A new session. */
export function StartView() {
  return (
    <div class="view start">
      <h1>New session</h1>
      {may("run") ? <StartForm /> : <MayNot />}
    </div>
  );
}

function MayNot() {
  return (
    <>
      <p>
        You may look at sessions, and not start any: that needs a token with the scope <code>run</code>. Whoever runs
        this server can give you one.
      </p>
      <p>
        <a href={hrefOf({ view: "sessions" })}>To the sessions</a>
      </p>
    </>
  );
}
