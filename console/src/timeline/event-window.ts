import { batch, computed, type ReadonlySignal, signal, type Signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { EventPage, SessionDetail, ShownEvent } from "../../../src/console/wire.ts";
import { ApiProblem, get, messageOf } from "../net/api.ts";
import { follow, type FollowedEvent } from "../state/live.ts";
import { isAtWork } from "../session/status.ts";
import { hrefOf } from "../state/route.ts";
import { verificationNow } from "./evidence/verification-words.ts";
import { TimelineReducer } from "./reducer/timeline-reducer.ts";
import type { Item } from "./reducer/item.ts";

/**
 * Loaded part of a session's log: a window without gaps. Grows at the side to which the reader scrolls and shrinks at the
 * other. Live events are appended while the window reaches the end of the log.
 */

/** `PAGE`: events per request. `MAX_EVENTS`: events in the window; more are dropped at the far side. */
const PAGE = 200;
const MAX_EVENTS = 600;
/** Maximum events if `readerIsAtEnd` is false, when no events are dropped. Further live events are not appended. */
const MAX_UNREAD_EVENTS = 1_200;
/** Batching interval of live events, ms. */
const BATCH_MS = 100;

export interface Extent {
  /** Ids of the first and the last loaded event, and of the newest event in the log. */
  readonly first: number;
  readonly last: number;
  readonly newest: number;
}

interface Problem {
  readonly words: string;
  readonly isMissing: boolean;
}

export class EventWindow {
  readonly sessionId: string;
  readonly #items = signal<readonly Item[]>([]);
  readonly #extent = signal<Extent | undefined>(undefined);
  readonly #detail = signal<SessionDetail | undefined>(undefined);
  readonly #partial = signal("");
  readonly #detailProblem = signal<Problem | undefined>(undefined);
  readonly #pageProblem = signal<Problem | undefined>(undefined);
  readonly #problem = computed(
    () => (this.#detail.value ? undefined : this.#detailProblem.value) ?? this.#pageProblem.value,
  );
  readonly #verification = computed(() => {
    const [detail, extent] = [this.#detail.value, this.#extent.value];
    if (!detail || extent?.last !== extent?.newest) return "";
    return verificationNow(this.#items.value, isAtWork(detail));
  });
  readonly #isGone = signal(false);
  readonly #news = signal<Item | undefined>(undefined);
  /** Set by `Reader`: true while the end is visible. */
  readerIsAtEnd = true;

  readonly #whole = new Map<number, Promise<ShownEvent>>();
  #events: readonly ShownEvent[] = [];
  #newest = 0;
  #reducer = new TimelineReducer();
  #unfinished = "";
  #hasNews = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #loading: AbortController | undefined;
  #unfollow: (() => void) | undefined;

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  get items(): ReadonlySignal<readonly Item[]> {
    return this.#items;
  }

  /** `undefined` until the first events are loaded. */
  get extent(): ReadonlySignal<Extent | undefined> {
    return this.#extent;
  }

  get detail(): ReadonlySignal<SessionDetail | undefined> {
    return this.#detail;
  }

  /** Unfinished text of Claude Code. */
  get partial(): ReadonlySignal<string> {
    return this.#partial;
  }

  /** State of the last turn's verification in words; "" if there is nothing to say, or the end of the log is not loaded. */
  get verification(): ReadonlySignal<string> {
    return this.#verification;
  }

  get problem(): ReadonlySignal<Problem | undefined> {
    return this.#problem;
  }

  /** Latest item received live. */
  get news(): ReadonlySignal<Item | undefined> {
    return this.#news;
  }

  get isGone(): ReadonlySignal<boolean> {
    return this.#isGone;
  }

  close(): void {
    this.#unfollow?.();
    this.#loading?.abort();
    clearTimeout(this.#timer);
  }

  /** Loads the window around `eventId` or at the end, then follows live events. */
  async open(eventId?: number): Promise<void> {
    const detail = attempt(this.#detailProblem, async () => get<SessionDetail>(this.#path("")));
    await this.goTo(eventId);
    const found = await detail;
    if (found && !this.#detail.value) this.#detail.value = found;
  }

  /** Replaces the window: around `eventId`, or at the end. */
  async goTo(eventId?: number): Promise<void> {
    const query = eventId === undefined ? {} : { from: Math.max(1, eventId - PAGE / 2) };
    await this.#loadPage(query, (page) => page.events);
  }

  async loadOlder(): Promise<void> {
    const first = this.#events[0]?.id ?? 1;
    if (first <= 1 || this.#loading) return;
    await this.#loadPage({ before: first }, ({ events }) => [...events, ...this.#events].slice(0, MAX_EVENTS));
  }

  async loadNewer(): Promise<void> {
    const last = this.#last;
    if (last >= this.#newest || this.#loading) return;
    await this.#loadPage({ from: last + 1 }, ({ events }) => {
      // Skips events that `#append` has added meanwhile.
      const added = events.filter(({ id }) => id > this.#last);
      return [...this.#events, ...added].slice(-MAX_EVENTS);
    });
  }

  /** Loads the uncut event with the data of its files. Concurrent calls share a request. */
  async wholeEvent(eventId: number): Promise<ShownEvent> {
    const asked = this.#whole.get(eventId) ?? get<ShownEvent>(this.#path(`/events/${String(eventId)}`));
    this.#whole.set(eventId, asked);
    try {
      return await asked;
    } finally {
      this.#whole.delete(eventId);
    }
  }

  /** Replaces the event in the window by `wholeEvent`, so that the uncut texts are shown. */
  async showWhole(eventId: number): Promise<void> {
    const { cut: _, ...event } = await this.wholeEvent(eventId);
    this.#replace(this.#events.map((each) => (each.id === eventId ? event : each)));
  }

  get #last(): number {
    return this.#events.at(-1)?.id ?? 0;
  }

  #path(rest: string): string {
    return `sessions/${encodeURIComponent(this.sessionId)}${rest}`;
  }

  async #loadPage(query: Record<string, number>, put: (page: EventPage) => readonly ShownEvent[]): Promise<void> {
    this.#loading?.abort();
    const loading = new AbortController();
    this.#loading = loading;
    const { signal: abort } = loading;
    const page = await attempt(
      this.#pageProblem,
      async () => get<EventPage>(this.#path("/events"), { ...query, limit: PAGE }, abort),
      abort,
    );
    if (this.#loading === loading) this.#loading = undefined;
    if (!page || abort.aborted) return;
    this.#newest = Math.max(this.#newest, page.lastEventId);
    this.#replace(put(page));
    // Follows from the end of the log, whichever page was loaded, because `news` reports only new events.
    this.#unfollow ??= follow(this.sessionId, this.#newest + 1, (event) => this.#handleLive(event));
  }

  #handleLive(event: FollowedEvent): void {
    if (event.kind === "gone") this.#isGone.value = true;
    if (event.kind === "session") this.#detail.value = event.data;
    if (event.kind === "partial") this.#unfinished = event.data.text;
    if (event.kind === "log") this.#append(event.data);
    this.#timer ??= setTimeout(() => this.#publish(), BATCH_MS);
  }

  #append(event: ShownEvent): void {
    this.#newest = Math.max(this.#newest, event.id);
    const isNext = event.id === this.#last + 1;
    if (!isNext || (!this.readerIsAtEnd && this.#events.length >= MAX_UNREAD_EVENTS)) return;
    this.#events = [...this.#events, event];
    this.#reducer.take(event);
    this.#hasNews = true;
    // Drops the unfinished text, which the event now holds. The `partial` event that says so comes a little later.
    if (isOwnText(event)) this.#unfinished = "";
  }

  #replace(events: readonly ShownEvent[]): void {
    this.#events = events;
    this.#reducer = new TimelineReducer();
    for (const event of events) this.#reducer.take(event);
    this.#publish();
  }

  #publish(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.readerIsAtEnd && this.#events.length > MAX_EVENTS + PAGE)
      return this.#replace(this.#events.slice(-MAX_EVENTS));
    const first = this.#events[0]?.id ?? 1;
    batch(() => {
      this.#items.value = this.#reducer.items;
      if (this.#hasNews) this.#news.value = this.#reducer.items.at(-1);
      this.#partial.value = this.#unfinished;
      this.#extent.value = { first, last: this.#last, newest: this.#newest };
    });
    this.#hasNews = false;
  }
}

/**
 * Stores an error in `problem` and resolves to `undefined`. Ignores the error of an aborted load, because another load has
 * replaced it.
 */
async function attempt<T>(
  problem: Signal<Problem | undefined>,
  load: () => Promise<T>,
  abort?: AbortSignal,
): Promise<T | undefined> {
  try {
    const loaded = await load();
    problem.value = undefined;
    return loaded;
  } catch (error) {
    if (abort?.aborted === true) return undefined;
    const isMissing = error instanceof ApiProblem && error.status === 404;
    problem.value = { words: messageOf(error), isMissing };
    return undefined;
  }
}

function isOwnText(event: ShownEvent): boolean {
  if (event.type !== "message") return false;
  const { parent_tool_use_id: parent, type } = event.data.message;
  return type === "assistant" && typeof parent !== "string";
}

/** Gives the items of a timeline access to the loaded events. */
export const EventWindowContext = createContext<EventWindow | undefined>(undefined);

/** Returns addresses of events in the timeline's session. */
export function useEventHref(): (eventId: number) => string {
  const eventWindow = useContext(EventWindowContext);
  const here = hrefOf({ view: "session", id: eventWindow?.sessionId ?? "" });
  return (eventId) => `${here}?event=${String(eventId)}`;
}
