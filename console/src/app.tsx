import { useEffect } from "preact/hooks";
import { connection, listen, requests } from "./state/live.ts";
import { isStranger, learnMe, me } from "./state/me.ts";
import { hrefOf, route } from "./state/route.ts";
import { NumbersView } from "./views/numbers.tsx";
import { SessionsView } from "./views/sessions.tsx";
import { SessionView } from "./views/session.tsx";
import { SignInView } from "./views/sign-in.tsx";
import { StartView } from "./views/start.tsx";
import { WaitingView } from "./views/waiting.tsx";

/** The frame around the views. */
export function App() {
  useEffect(() => void learnMe().catch(() => (connection.value = "lost")), []);
  const isKnown = me.value !== undefined;
  useEffect(() => (isKnown ? listen() : undefined), [isKnown]);
  if (isStranger.value) return <SignInView />;
  if (!isKnown) return <p role="status">Connecting…</p>;
  return (
    <>
      <header class="bar">
        <nav aria-label="Views">
          <a href={hrefOf({ view: "sessions" })}>Sessions</a>
          <a href={hrefOf({ view: "waiting" })}>
            Waiting {requests.value.length > 0 && <b>{requests.value.length}</b>}
          </a>
          <a href={hrefOf({ view: "numbers" })}>Numbers</a>
        </nav>
      </header>
      {connection.value === "lost" && <p role="alert">The server is gone. Trying again…</p>}
      <main>
        <View />
      </main>
    </>
  );
}

function View() {
  const at = route.value;
  switch (at.view) {
    case "session":
      return <SessionView key={at.id} id={at.id} />;
    case "waiting":
      return <WaitingView />;
    case "numbers":
      return <NumbersView />;
    case "start":
      return <StartView />;
    case "sessions":
      return <SessionsView />;
  }
}
