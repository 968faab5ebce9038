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
        You can view sessions but not start any: that requires a token with the scope <code>run</code>. Ask the operator
        of this server for one.
      </p>
      <p>
        <a href={hrefOf({ view: "sessions" })}>All sessions</a>
      </p>
    </>
  );
}
