import "../style/timeline.css";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Markdown } from "../parts/markdown.tsx";
import { Announcer } from "./announcer.tsx";
import { Entry } from "./entry.tsx";
import { FeedContext, type Feed } from "./feed.ts";
import type { Item } from "./fold/item.ts";
import { Reader } from "./reader.ts";
import { anchorOf, hold } from "./scroll.ts";

interface Props {
  readonly feed: Feed;
  /** The event that is to be looked at. */
  readonly eventId: number | undefined;
  /** What stands behind the last event. */
  readonly children: ComponentChildren;
}

/** The session's log, as far as it is loaded: more of it when the reader comes near, and what happens as it happens. */
export function Timeline({ children, eventId, feed }: Props) {
  const section = useRef<HTMLElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const reader = useReader(feed, section);
  const items = feed.items.value;
  const extent = feed.extent.value;
  const isCurrent = extent?.last === extent?.newest;
  const target = useTarget(feed, reader, eventId);

  // Taken now, before what is drawn below changes.
  const anchor = feed.readerIsAtEnd ? undefined : anchorOf(list.current);
  useLayoutEffect(() => {
    if (anchor) hold(anchor);
    else if (extent) reader?.stay();
    reader?.look();
  }, [items, reader]);

  return (
    <FeedContext.Provider value={feed}>
      <section class="timeline" aria-labelledby="timeline-title" ref={section}>
        <h2 id="timeline-title" class="unseen">
          What has happened
        </h2>
        {extent && <Beginning feed={feed} reader={reader} isWhole={extent.first <= 1} />}
        <ol class="items" ref={list}>
          {items.map((item) => (
            <Entry key={item.key} item={item} isTarget={item.key === target} />
          ))}
        </ol>
        {isCurrent ? <Partial feed={feed} /> : <p class="more">Loading newer…</p>}
        {children}
      </section>
      {reader && <ToEnd feed={feed} reader={reader} isCurrent={isCurrent} />}
      <Announcer items={items} />
    </FeedContext.Provider>
  );
}

function useReader(feed: Feed, section: { readonly current: HTMLElement | null }): Reader | undefined {
  const [reader, setReader] = useState<Reader>();
  useEffect(() => {
    if (!section.current) return;
    const made = new Reader(feed, section.current);
    setReader(made);
    return () => made.close();
  }, [feed]);
  return reader;
}

/** Brings the event into view, once it is there; answers with the key of its item. */
function useTarget(feed: Feed, reader: Reader | undefined, eventId: number | undefined): string | undefined {
  const extent = feed.extent.value;
  const isLoaded = extent !== undefined;
  const [target, setTarget] = useState<string>();
  useEffect(() => {
    if (eventId === undefined || !isLoaded || !reader) return;
    reader.leave();
    const isNear = extent.first <= eventId && eventId <= extent.last;
    void (isNear ? Promise.resolve() : feed.goTo(eventId)).then(() => {
      const item = itemOf(feed.items.value, eventId);
      setTarget(item?.key);
      // When it has been drawn.
      requestAnimationFrame(() => show(item));
    });
  }, [eventId, isLoaded, reader]);
  return target;
}

function itemOf(items: readonly Item[], eventId: number): Item | undefined {
  return items.findLast((item) => item.eventId <= eventId);
}

function show(item: Item | undefined): void {
  const element = item && document.querySelector<HTMLElement>(`.items > [data-event="${String(item.eventId)}"]`);
  element?.scrollIntoView({ block: "center", behavior: "instant" });
  element?.focus({ preventScroll: true });
}

interface BeginningProps {
  readonly feed: Feed;
  readonly reader: Reader | undefined;
  readonly isWhole: boolean;
}

function Beginning({ feed, isWhole, reader }: BeginningProps) {
  if (isWhole) return null;
  const toStart = () => {
    reader?.leave();
    void feed.goTo(1).then(() => requestAnimationFrame(() => scrollTo({ top: 0, behavior: "instant" })));
  };
  return (
    <p class="more">
      Loading older…{" "}
      <button type="button" onClick={toStart}>
        Go to the start
      </button>
    </p>
  );
}

function Partial({ feed }: { readonly feed: Feed }) {
  const text = feed.partial.value;
  if (text === "") return null;
  return (
    <div class="partial" aria-busy="true">
      <Markdown text={text} />
    </div>
  );
}

function ToEnd({
  feed,
  isCurrent,
  reader,
}: {
  readonly feed: Feed;
  readonly reader: Reader;
  readonly isCurrent: boolean;
}) {
  const extent = feed.extent.value;
  if (!extent || (isCurrent && !reader.isAway.value)) return null;
  const toEnd = () => {
    if (isCurrent) return reader.stay();
    feed.readerIsAtEnd = true;
    void feed.goTo();
  };
  return (
    <p class="to-end">
      <button type="button" onClick={toEnd}>
        {extent.newest > reader.seen.value && reader.seen.value > 0 ? "New activity" : "To the end"}{" "}
        <span aria-hidden="true">↓</span>
      </button>
    </p>
  );
}
