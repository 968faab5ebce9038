import { batch, computed, type ReadonlySignal, signal, type Signal } from "@preact/signals";
import { createContext } from "preact";
import type { EventPage, SessionDetail, ShownEvent } from "../../../src/console/wire.ts";
import { ApiProblem, get, wordsOf } from "../net/api.ts";
import { follow, type FollowedEvent } from "../state/live.ts";
import { TimelineReducer } from "./reducer/timeline-reducer.ts";
import type { Item } from "./reducer/item.ts";

/**
 * The part of one session's log that is loaded: a window without a gap. It grows at the side to which the reader goes, and
 * is cut off at the other. While it reaches the end of the log, what happens is put to it as it happens.
 */

/** Events of a page; and of a window, at which its other side is let go. */
const PAGE = 200;
const MAX_EVENTS = 600;
/** While the reader looks at something else nothing is let go; when so much has happened, what comes is not put to it any more. */
const MAX_UNREAD_EVENTS = 1_200;
/** What comes at once is shown at once, ms. */
const TOGETHER_MS = 100;

export interface Extent {
  /** Ids of the first and the last event that is loaded, and of the last that there is. */
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
  readonly #isGone = signal(false);
  readonly #news = signal<Item | undefined>(undefined);
  /** Set by the view: the end is visible. */
  readerIsAtEnd = true;

  readonly #whole = new Map<number, Promise<ShownEvent>>();
  #events: readonly ShownEvent[] = [];
  #newest = 0;
  #reducer = new TimelineReducer();
  #said = "";
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

  /** Undefined until the first events are there. */
  get extent(): ReadonlySignal<Extent | undefined> {
    return this.#extent;
  }

  get detail(): ReadonlySignal<SessionDetail | undefined> {
    return this.#detail;
  }

  /** What is being written just now. */
  get partial(): ReadonlySignal<string> {
    return this.#partial;
  }

  get problem(): ReadonlySignal<Problem | undefined> {
    return this.#problem;
  }

  /** What has happened last while it was followed. */
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

  /** Loads anew, around the event or at the end, and follows what happens from there on. */
  async open(eventId?: number): Promise<void> {
    const detail = attempt(this.#detailProblem, async () => get<SessionDetail>(this.#path("")));
    await this.goTo(eventId);
    const found = await detail;
    if (found && !this.#detail.value) this.#detail.value = found;
  }

  /** Around the event, or to the end. */
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
      // Some of them may have come live in the meantime.
      const added = events.filter(({ id }) => id > this.#last);
      return [...this.#events, ...added].slice(-MAX_EVENTS);
    });
  }

  /** Uncut, with the data of its files. Asked for once by all that want it at the same time. */
  async wholeEvent(eventId: number): Promise<ShownEvent> {
    const asked = this.#whole.get(eventId) ?? get<ShownEvent>(this.#path(`/events/${String(eventId)}`));
    this.#whole.set(eventId, asked);
    try {
      return await asked;
    } finally {
      this.#whole.delete(eventId);
    }
  }

  /** Shows the event with its texts uncut. */
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
    // Whatever was loaded first: only what happens from now on is to be told.
    this.#unfollow ??= follow(this.sessionId, this.#newest + 1, (event) => this.#hear(event));
  }

  #hear(event: FollowedEvent): void {
    if (event.kind === "gone") this.#isGone.value = true;
    if (event.kind === "session") this.#detail.value = event.data;
    if (event.kind === "partial") this.#said = event.data.text;
    if (event.kind === "log") this.#append(event.data);
    this.#timer ??= setTimeout(() => this.#publish(), TOGETHER_MS);
  }

  #append(event: ShownEvent): void {
    this.#newest = Math.max(this.#newest, event.id);
    const isNext = event.id === this.#last + 1;
    if (!isNext || (!this.readerIsAtEnd && this.#events.length >= MAX_UNREAD_EVENTS)) return;
    this.#events = [...this.#events, event];
    this.#reducer.take(event);
    this.#hasNews = true;
    // What was being written stands there now; that it has been said is told a little later.
    if (isSpoken(event)) this.#said = "";
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
      this.#partial.value = this.#said;
      this.#extent.value = { first, last: this.#last, newest: this.#newest };
    });
    this.#hasNews = false;
  }
}

/** Keeps what goes wrong, unless it was broken off: then something else is on its way. */
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
    problem.value = { words: wordsOf(error), isMissing };
    return undefined;
  }
}

function isSpoken(event: ShownEvent): boolean {
  if (event.type !== "message") return false;
  const { parent_tool_use_id: parent, type } = event.data.message;
  return type === "assistant" && typeof parent !== "string";
}

/** Gives the items of a timeline access to the loaded events. */
export const EventWindowContext = createContext<EventWindow | undefined>(undefined);
