import "./style/frame.css";
import { useEffect } from "preact/hooks";
import { Announcements } from "./frame/announcements.tsx";
import { ConnectionBanner } from "./frame/connection-banner.tsx";
import { Header } from "./frame/header.tsx";
import { KeyHelp } from "./frame/key-help.tsx";
import { StartNotices } from "./frame/start-notices.tsx";
import { CurrentView } from "./frame/current-view.tsx";
import { useWindowTitle } from "./frame/window-title.ts";
import { listen } from "./state/live.ts";
import { isStranger, me } from "./state/me.ts";
import { SignInView } from "./views/sign-in.tsx";

/** The frame around the views. */
export function App() {
  const who = me.value;
  const isKnown = who !== undefined;
  // By who it is: whoever signs in anew gets a stream of his own.
  useEffect(() => (who ? listen() : undefined), [who]);
  useWindowTitle();
  return (
    <>
      {isKnown && (
        <button type="button" class="skip" onClick={() => document.querySelector("main")?.focus()}>
          Skip to content
        </button>
      )}
      {isKnown && <Header />}
      <ConnectionBanner />
      <Inside isKnown={isKnown} />
    </>
  );
}

function Inside({ isKnown }: { readonly isKnown: boolean }) {
  if (isStranger.value) return <SignInView />;
  if (!isKnown)
    return (
      <p class="connecting soft" role="status">
        Connecting…
      </p>
    );
  return (
    <>
      <main tabIndex={-1}>
        <StartNotices />
        <CurrentView />
      </main>
      <Announcements />
      <KeyHelp />
    </>
  );
}
