import { AppError, invalidArgument } from "../../domain/error.ts";
import type { Caller } from "../../domain/principal.ts";
import { events } from "../../engine/actions/reading.ts";
import { requireScope } from "../../engine/actions/scope.ts";
import { findResource, type Library } from "../resources/resource.ts";
import type { LogPosition, SessionWatch } from "./session-watch.ts";

/** Resources followed by one connection, or by one stream of a connection. */

/** Maximum number of followed resources; each needs a reader of a log. */
const MAX_SUBSCRIPTIONS = 100;

/** Parts needed for subscriptions, loaded with the first. */
export interface SubscriptionParts {
  readonly watch: SessionWatch;
  readonly library: Library;
}

interface FollowedResource {
  /** Number of subscriptions to the resource. */
  count: number;
  readonly stop: () => void;
}

export class Subscriptions {
  readonly #following: SubscriptionParts;
  readonly #onUpdated: (uri: string) => void;
  readonly #followed = new Map<string, FollowedResource>();
  #closed = false;

  /** `onUpdated` is called with the URI in its original spelling. */
  constructor(following: SubscriptionParts, onUpdated: (uri: string) => void) {
    this.#following = following;
    this.#onUpdated = onUpdated;
  }

  /**
   * Subscribes to `uri`. Pages can be followed, but never change. Throws `AppError`: SESSION_NOT_FOUND for an unknown resource,
   * and equally for a resource of another principal.
   */
  async add(uri: string, caller: Caller): Promise<void> {
    requireScope(caller, events.scope, "Following resources");
    const session = await this.#findSession(uri, caller);
    const known = this.#followed.get(uri);
    if (known) {
      known.count += 1;
      return;
    }
    if (this.#followed.size >= MAX_SUBSCRIPTIONS) throw tooManySubscriptions();
    if (this.#closed) return;
    const stop = session && this.#following.watch.follow(caller.principal, session, () => this.#onUpdated(uri));
    this.#followed.set(uri, { count: 1, stop: stop ?? (() => undefined) });
  }

  has(uri: string): boolean {
    return this.#followed.has(uri);
  }

  /** No-op for a resource without a subscription. */
  drop(uri: string): void {
    const known = this.#followed.get(uri);
    if (!known) return;
    known.count -= 1;
    if (known.count > 0) return;
    known.stop();
    this.#followed.delete(uri);
  }

  close(): void {
    this.#closed = true;
    for (const { stop } of this.#followed.values()) stop();
    this.#followed.clear();
  }

  async #findSession(uri: string, { principal }: Caller): Promise<LogPosition | undefined> {
    const found = findResource(this.#following.library, uri);
    if (!found) throw new AppError("SESSION_NOT_FOUND", `There is no resource ${uri.slice(0, 200)} to subscribe to.`);
    if ("page" in found) return undefined;
    const { sessionId: id } = found;
    return { id, cursor: await this.#following.watch.cursorOf(principal, id) };
  }
}

function tooManySubscriptions(): AppError {
  const most = String(MAX_SUBSCRIPTIONS);
  return invalidArgument(
    "uri",
    `a connection can subscribe to at most ${most} resources. Unsubscribe from another first.`,
  );
}
