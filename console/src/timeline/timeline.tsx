import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Markdown } from "../parts/markdown.tsx";
import { type EventWindow, EventWindowContext } from "./event-window.ts";
import { receiptText } from "./evidence/receipt-words.ts";
import { RED, verificationTitle } from "./evidence/verification-words.ts";
import { Foot } from "./foot.tsx";
import type { Item } from "./reducer/item.ts";
import { Items } from "./items.tsx";
import { END_WORDS } from "./items/turn-end.tsx";
import { Reader } from "./reader.ts";
import { type Target, TargetContext, findTarget } from "./target.ts";
import { callTitle } from "./call/title.ts";
import { truncateLine } from "../parts/text.ts";
import { bindKeys } from "../state/keys.ts";
import styles from "./timeline.module.css";

interface Props {
  readonly eventWindow: EventWindow;
  /** Event to show. */
  readonly eventId: number | undefined;
  /** Content after the last event. */
  readonly children: ComponentChildren;
  /** Content of the sticky footer. */
  readonly foot: ComponentChildren;
}

/** Log of the session, as far as `EventWindow` has loaded it. Loads more when the reader comes near an edge. */
export function Timeline({ children, eventId, eventWindow, foot }: Props) {
  const [section, setSection] = useState<HTMLElement | null>(null);
  const reader = useReader(eventWindow, section);
  const items = eventWindow.items.value;
  const extent = eventWindow.extent.value;
  const isCurrent = extent?.last === extent?.newest;
  const target = useTarget(eventWindow, reader, eventId);
  useEffect(() => {
    if (!reader) return;
    return bindKeys({ End: () => void reader.toEnd(), Home: () => void reader.toStart() });
  }, [reader]);
  return (
    <EventWindowContext.Provider value={eventWindow}>
      <TargetContext.Provider value={target}>
        <section class={styles["timeline"]} aria-labelledby="timeline-title" ref={setSection}>
          <h2 id="timeline-title" class="visually-hidden">
            Timeline
          </h2>
          {!extent && <Skeleton />}
          {extent && extent.first > 1 && <p class={styles["edge"]}>Loading older…</p>}
          {reader && <Items items={items} reader={reader} />}
          {isCurrent ? <Partial eventWindow={eventWindow} /> : <p class={styles["edge"]}>Loading newer…</p>}
          {children}
          <Announcer eventWindow={eventWindow} />
        </section>
      </TargetContext.Provider>
      <Foot eventWindow={eventWindow} reader={reader} isCurrent={isCurrent}>
        {foot}
      </Foot>
    </EventWindowContext.Provider>
  );
}

function Skeleton() {
  return (
    <p class={styles["edge"]} role="status">
      Loading…
    </p>
  );
}

function useReader(eventWindow: EventWindow, section: HTMLElement | null): Reader | undefined {
  const [reader, setReader] = useState<Reader>();
  useEffect(() => {
    if (!section) return;
    const made = new Reader(eventWindow, section);
    setReader(made);
    return () => made.close();
  }, [eventWindow, section]);
  return reader;
}

/** Scrolls to the event once events are loaded. */
function useTarget(
  eventWindow: EventWindow,
  reader: Reader | undefined,
  eventId: number | undefined,
): Target | undefined {
  const isLoaded = eventWindow.extent.value !== undefined;
  const [target, setTarget] = useState<Target>();
  useEffect(() => {
    if (eventId === undefined || !isLoaded || !reader) return;
    let isCurrent = true;
    const lead = async () => {
      await reader.prepareFor(eventId);
      if (!isCurrent) return;
      const found = findTarget(eventWindow.items.value, eventId);
      setTarget(found);
      // Waits until the item is drawn.
      requestAnimationFrame(() => isCurrent && show(found?.item));
    };
    void lead();
    return () => {
      isCurrent = false;
    };
  }, [eventWindow, eventId, isLoaded, reader]);
  return target;
}

function show(item: Item | undefined): void {
  const element = item && document.querySelector<HTMLElement>(`[data-event="${String(item.eventId)}"]`);
  element?.scrollIntoView({ block: "center", behavior: "instant" });
  element?.focus({ preventScroll: true });
}

function Partial({ eventWindow }: { readonly eventWindow: EventWindow }) {
  const text = eventWindow.partial.value;
  if (text === "") return null;
  return (
    <div class={styles["partial"]} aria-busy="true">
      <Markdown text={text} />
    </div>
  );
}

/** Announces live items to screen readers, in short. Loaded items are not announced. */
function Announcer({ eventWindow }: { readonly eventWindow: EventWindow }) {
  const news = eventWindow.news.value;
  return (
    <p class="visually-hidden" role="status">
      {news && announcementText(news)}
    </p>
  );
}

function announcementText(item: Item): string {
  switch (item.kind) {
    case "text":
      return truncateLine(item.text, 300);
    case "call": {
      const { subject, verb } = callTitle(item.name, item.input, "");
      return truncateLine(`${verb} ${subject}`, 120);
    }
    case "request":
      return `${item.request.toolName} is waiting for approval`;
    case "turn":
      if (item.cause !== undefined) return truncateLine(`The turn failed: ${item.cause}`, 200);
      return item.ended.errorSubtype === RED ? "Verification failed" : END_WORDS[item.ended.outcome];
    case "verification":
      // The head of the session announces a running one.
      return item.state === "running" ? "" : verificationTitle(item).text;
    case "receipt":
      return receiptText(item.receipt);
    case "line":
      return truncateLine(item.text, 200);
    case "prompt":
      return "A prompt was sent";
    case "thinking":
      return "";
  }
}
