import "./style/base.css";
import "./style/controls.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { startRetries } from "./net/backoff.ts";
import { startNotifications } from "./requests/notify.ts";
import { clearListAtSignOut } from "./sessions/list.ts";
import { startSession } from "./state/sign-in.ts";
import { isAlone, startRequestPage } from "./state/request-page.ts";
import { startClock } from "./state/clock.ts";
import { startKeys } from "./state/keys.ts";
import { startSignOut } from "./state/me.ts";
import { startRouting } from "./state/route.ts";

startRequestPage();
startClock();
startKeys();
if (!isAlone) startConsole();

function startConsole(): void {
  startSignOut();
  // Before routing: removes the token from the address before `startRouting` reads the address.
  startSession();
  startRouting();
  startRetries();
  clearListAtSignOut();
  startNotifications();
}

const root = document.getElementById("app");
if (root) render(<App />, root);
