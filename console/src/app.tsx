import { useEffect } from "preact/hooks";
import { Announcements } from "./frame/announcements.tsx";
import { ConnectionBanner } from "./frame/connection-banner.tsx";
import { Header } from "./frame/header.tsx";
import { KeyHelp } from "./frame/key-help.tsx";
import { CurrentView } from "./frame/current-view.tsx";
import { listen, requests } from "./state/live.ts";
import { isSignedOut, me } from "./state/me.ts";
import { RequestView } from "./views/request.tsx";
import { SignInView } from "./views/sign-in.tsx";
import { displayLine } from "./parts/text.ts";
import { dropNotices, notices } from "./state/notices.ts";
import { isAlone } from "./state/request-page.ts";
import { route } from "./state/route.ts";
import { viewTitle } from "./state/title.ts";
import { isViewName, VIEWS } from "./state/views.ts";
import { classNames } from "./parts/class-names.ts";
import styles from "./frame/frame.module.css";

export function App() {
  return isAlone ? <RequestView /> : <Console />;
}

function Console() {
  const who = me.value;
  const isKnown = who !== undefined;
  // Restarts `listen` for each user, so that a new sign-in gets its own stream.
  useEffect(() => (who ? listen() : undefined), [who]);
  useWindowTitle();
  return (
    <>
      {isKnown && (
        <button type="button" class={styles["skip"]} onClick={() => document.querySelector("main")?.focus()}>
          Skip to content
        </button>
      )}
      {isKnown && <Header />}
      <ConnectionBanner />
      <Content isKnown={isKnown} />
    </>
  );
}

function Content({ isKnown }: { readonly isKnown: boolean }) {
  if (isSignedOut.value) return <SignInView />;
  if (!isKnown)
    return (
      <p class={classNames(styles, "connecting", "soft")} role="status">
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

/** Warnings of the server about the start of the session, shown above `SessionView`. */
function StartNotices() {
  const at = route.value;
  if (at.view !== "session") return null;
  const texts = notices.value[at.id];
  if (!texts) return null;
  return (
    <div class={styles["notices"]} role="status">
      <ul>
        {texts.map((text) => (
          <li key={text}>{displayLine(text)}</li>
        ))}
      </ul>
      <button type="button" class="quiet" onClick={() => dropNotices(at.id)}>
        Dismiss
      </button>
    </div>
  );
}

/** Sets `document.title`: "(2) Sessions · claude-agents-mcp" shows the number of open requests in the tab. */
function useWindowTitle(): void {
  const waiting = requests.value.length;
  const { view } = route.value;
  const usual = isViewName(view) ? VIEWS[view].name : "Session";
  const name = isSignedOut.value ? "Sign in" : displayLine(viewTitle.value ?? usual);
  const text = `${waiting > 0 ? `(${String(waiting)}) ` : ""}${name} · claude-agents-mcp`;
  useEffect(() => {
    document.title = text;
  }, [text]);
}
