import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { EventWindow } from "./event-window.ts";
import type { Reader } from "./reader.ts";
import styles from "./timeline.module.css";

interface Props {
  readonly eventWindow: EventWindow;
  readonly reader: Reader | undefined;
  readonly isCurrent: boolean;
  readonly children: ComponentChildren;
}

/** Sticky footer of the timeline, with buttons to both ends. */
export function Foot({ children, eventWindow, isCurrent, reader }: Props) {
  const foot = useRef<HTMLElement>(null);
  const ends = useRef<HTMLParagraphElement>(null);
  const measure = () => publishHeights(foot.current, ends.current);
  const extent = eventWindow.extent.value;
  const isAway = reader?.isAway.value === true || !isCurrent;
  // After each render, because the buttons to the ends may have come or gone.
  useLayoutEffect(measure);
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    for (const each of [foot.current, headOf(foot.current)]) if (each) observer.observe(each);
    addEventListener("resize", measure);
    return () => {
      observer.disconnect();
      removeEventListener("resize", measure);
    };
  }, []);
  return (
    <footer class={styles["foot"]} ref={foot}>
      {reader && extent && isAway && (
        <p class={styles["to-end"]} ref={ends}>
          {extent.first > 1 && (
            <button type="button" onClick={() => void reader.toStart()}>
              To the start <span aria-hidden="true">↑</span>
            </button>
          )}
          <button type="button" onClick={() => void reader.toEnd()}>
            {extent.newest > reader.seen.value && reader.seen.value > 0 ? "New activity" : "To the end"}{" "}
            <span aria-hidden="true">↓</span>
          </button>
        </p>
      )}
      {children}
    </footer>
  );
}

/** Space between the footer and the buttons to the ends, px. */
const GAP = 10;

/**
 * Sets `--below` and `--above` to the heights of the sticky parts, for scroll margins and further sticky elements, so that no
 * content is hidden behind a sticky part.
 */
function publishHeights(foot: HTMLElement | null, ends: HTMLElement | null): void {
  if (!foot) return;
  const below = stickyHeight(foot) + (ends ? ends.offsetHeight + GAP : 0);
  foot.parentElement?.style.setProperty("--below", `${String(below)}px`);
  foot.parentElement?.style.setProperty("--above", `${String(stickyHeight(headOf(foot)))}px`);
}

function headOf(foot: HTMLElement | null): HTMLElement | null {
  return foot?.parentElement?.querySelector<HTMLElement>(":scope > header") ?? null;
}

function stickyHeight(element: HTMLElement | null): number {
  return element && getComputedStyle(element).position === "sticky" ? element.offsetHeight : 0;
}
