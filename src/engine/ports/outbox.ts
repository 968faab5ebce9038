import type { FeedName } from "../../domain/feed.ts";
import type { Principal } from "../../domain/principal.ts";
import type { FeedFilter } from "./feed.ts";

/** Category of a failed delivery, as told to the subscriber: never the words of the receiver. */
export type DeliveryFault =
  "connection_refused" | "timeout" | "tls_error" | "http_4xx" | "http_5xx" | "challenge_failed";

/** Terms of a subscription, set with each `events/subscribe`. */
export interface SubscriptionTerms {
  /** Derived from principal, `url`, `name` and arguments, so that a subscription is found again. */
  readonly id: string;
  readonly principal: Principal;
  readonly name: FeedName;
  readonly filter: FeedFilter;
  readonly url: string;
  /** Key that signs deliveries, `whsec_` and base64. Never logged. */
  readonly secret: string;
  /** Lifetime without a renewal, ms. */
  readonly ttlMs: number;
}

export interface Subscription extends Omit<SubscriptionTerms, "ttlMs"> {
  /** By the clock of the store, ms since the epoch. */
  readonly expiresAt: number;
  /** The secret before the last change, which also signs until `until`, ms since the epoch. */
  readonly formerSecret?: { readonly secret: string; readonly until: number };
  /** Last success, and the failures since, ms since the epoch. */
  readonly deliveredAt?: number;
  readonly failedSince?: number;
  readonly lastFault?: DeliveryFault;
}

/** Position from which a new subscription is served; without `after`, from the present end of the feed. */
export interface ReplayStart {
  readonly after?: string | undefined;
  readonly since?: number | undefined;
}

export interface SubscriptionLimits {
  readonly total: number;
  readonly perPrincipal: number;
}

export interface Subscribed {
  readonly subscription: Subscription;
  /** Position before which everything is delivered or given up. */
  readonly cursor: string;
  readonly isTruncated: boolean;
}

/** A message to be sent to the operator's webhook, stored in the transaction of an append. */
export interface NewDelivery {
  /** Receiver: the id of a subscription, or one of the operator's. */
  readonly target: string;
  /** Unique for `target`, and the same at each attempt. Adding an id again changes only `nodeId` and `until`, and makes it due for a new node. */
  readonly messageId: string;
  readonly eventId: number;
  /** Type of the message. */
  readonly name: string;
  /** The only node that may send it; absent for any. */
  readonly nodeId?: string;
  /** Attempts after this time are useless, ms since the epoch; absent: a day after the event. */
  readonly until?: number;
}

export interface Delivery extends NewDelivery {
  readonly sessionId: string;
  readonly until: number;
  /** Principal of the subscription. Absent for the operator's. */
  readonly owner?: Principal;
  /** Attempts so far. */
  readonly attempts: number;
  /** For a subscription: position before which everything else is delivered or given up. Absent for the operator's. */
  readonly cursor?: string;
}

/** Result of an attempt. `retry`: again after `afterMs`, if that is before `until`, else given up. */
export type DeliveryResult =
  | { readonly is: "delivered" }
  | { readonly is: "retry"; readonly afterMs: number; readonly fault: DeliveryFault }
  | { readonly is: "abandoned"; readonly fault: DeliveryFault };

/** Deliveries that a server sends. */
export interface DeliveryScope {
  /** Targets of the operator. */
  readonly targets: readonly string[];
  /** True for all subscriptions, too. */
  readonly hasSubscribers: boolean;
}

export interface TakeQuery extends DeliveryScope {
  readonly except: readonly string[];
  readonly exceptOwners?: readonly Principal[];
  readonly limit: number;
  readonly holdMs: number;
}

/**
 * Webhooks of all servers of the store: subscriptions, and messages on their way. An append adds a delivery for each subscription
 * that its feed entries match, in the same transaction.
 */
export interface Outbox {
  /**
   * Creates or renews. A renewal of a living subscription changes the secret and the end alone, and keeps the former secret for
   * `graceMs`. A new one gets deliveries for the feed's items from `start` on. Resolves with the limit that is reached.
   */
  subscribe(
    terms: SubscriptionTerms,
    given: { readonly start: ReplayStart; readonly limits: SubscriptionLimits; readonly graceMs: number },
  ): Promise<Subscribed | keyof SubscriptionLimits>;
  /** Returns a living subscription. */
  find(id: string): Promise<Subscription | undefined>;
  /** True if a living subscription of the principal has this `url`, which was then verified. */
  isVerified(principal: Principal, url: string): Promise<boolean>;
  /** Removes a subscription and its deliveries. Resolves with false if there is none. */
  unsubscribe(id: string): Promise<boolean>;

  /** Adds deliveries of a session outside of an append. */
  add(sessionId: string, deliveries: readonly NewDelivery[]): Promise<void>;
  /** Removes a delivery that is no longer wanted. */
  withdraw(sessionId: string, target: string, messageId: string): Promise<void>;
  /**
   * Takes due deliveries of the scope, oldest first, but none to targets in `except` and of principals in `exceptOwners`, which
   * have enough under way. Nobody else gets them for `holdMs`; without a result by then, they are due again.
   */
  take(query: TakeQuery): Promise<Delivery[]>;
  /** Time until the next delivery of the scope is due, ms; `undefined` if none waits. */
  dueInMs(scope: DeliveryScope): Promise<number | undefined>;
  /** Records a result. Resolves with the end of the delivery: `retry`, or how it ended; `missing` if it was withdrawn meanwhile. */
  settle(delivery: Delivery, result: DeliveryResult): Promise<"retry" | "delivered" | "abandoned" | "missing">;
}
