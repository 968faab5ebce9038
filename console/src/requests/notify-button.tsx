import { notices, switchOff, switchOn } from "./notify.ts";

/** To be told by the browser while one looks elsewhere. */
export function NotifyButton() {
  switch (notices.value) {
    case "unknown":
      return undefined;
    case "blocked":
      return <p class="soft">Notifications for this page are blocked in the browser's settings.</p>;
    case "on":
      return (
        <button type="button" aria-pressed={true} onClick={switchOff}>
          Notifications are on
        </button>
      );
    case "off":
      return (
        <button type="button" aria-pressed={false} onClick={() => void switchOn()}>
          Notify me
        </button>
      );
  }
}
