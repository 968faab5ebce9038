import { randomBytes } from "node:crypto";
import { answer } from "../engine/actions/answering.ts";
import type { Caller, Scope } from "../domain/principal.ts";
import type { RequestKey } from "../http/permission-requests.ts";

/**
 * Single-use links to pages of single requests. A client gets a link where its form would leave something out. The first
 * opening exchanges the secret of the link for a page, which can read and answer this one request with the rights of the client
 * alone. Kept in memory: after a restart the client asks again.
 */

export interface RequestLink {
  /** Public name of the page in the API. */
  readonly id: string;
  readonly which: RequestKey;
  /** Principal of the session, with no more than the client's rights to answer. */
  readonly caller: Caller;
  readonly secret: string;
  readonly madeAt: number;
  /** Set by the first opening. */
  page?: { readonly secret: string; readonly openedAt: number };
  /** Time at which the user agreed to open the link, or the page was last seen. */
  seenAt?: number;
}

interface LinksOptions {
  /** Address of the page, up to the secret. */
  readonly address: () => string;
  /** Time in which a link can be opened, and then the page can be used, ms. */
  readonly lifetimeMs: number;
  /** Returns a monotonic time, ms. */
  readonly now?: () => number;
}

/** Time after which a silent page counts as closed, ms. Browsers wake hidden pages once a minute. */
const CLOSED_AFTER_MS = 70_000;

/** Maximum number of remembered links. The oldest is forgotten first. */
const MAX_LINKS = 10_000;

/** Number of lifetimes from its creation for which a link is remembered, so that the page can say that it has expired. */
const REMEMBERED = 6;

const SCOPES: readonly Scope[] = [answer.scope, "decide"];

export class RequestLinks {
  readonly #options: LinksOptions;
  readonly #now: () => number;
  /** Links by `secret`, oldest first. */
  readonly #links = new Map<string, RequestLink>();

  constructor(options: LinksOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  /** Returns the unused link of the client, or a new link if none has at least half of its lifetime left. */
  urlFor({ attended = false, principal, scopes }: Caller, which: RequestKey): string {
    const now = this.#now();
    const caller = {
      principal,
      scopes: SCOPES.filter((scope) => scopes.includes(scope)),
      ...(attended && { attended }),
    };
    const isUsable = (link: RequestLink) =>
      !link.page &&
      now - link.madeAt < this.#options.lifetimeMs / 2 &&
      JSON.stringify(link.caller) === JSON.stringify(caller);
    const link = this.#of(which).find(isUsable) ?? this.#make(caller, which, now);
    return this.#options.address() + link.secret;
  }

  noteAccepted(which: RequestKey): void {
    const link = this.#of(which).at(-1);
    if (link) link.seenAt = this.#now();
  }

  isOpen(which: RequestKey): boolean {
    const since = this.#now() - CLOSED_AFTER_MS;
    return this.#of(which).some((link) => link.seenAt !== undefined && link.seenAt > since && !this.hasExpired(link));
  }

  find(secret: string): RequestLink | undefined {
    return this.#links.get(secret);
  }

  hasExpired({ madeAt, page }: RequestLink): boolean {
    return this.#now() - (page?.openedAt ?? madeAt) >= this.#options.lifetimeMs;
  }

  /** Uses up the link. Call only for a link without `page`. Returns the secret of the page. */
  use(link: RequestLink): string {
    const secret = newSecret();
    const openedAt = this.#now();
    link.page = { secret, openedAt };
    link.seenAt = openedAt;
    return secret;
  }

  /** Finds the link of an opened page and notes that the page is in use. `undefined` for a wrong secret. */
  findPage(id: string, secret: string): RequestLink | undefined {
    const link = [...this.#links.values()].find((each) => each.id === id && each.page?.secret === secret);
    if (link) link.seenAt = this.#now();
    return link;
  }

  #of({ requestId, sessionId }: RequestKey): RequestLink[] {
    return [...this.#links.values()].filter(
      ({ which }) => which.requestId === requestId && which.sessionId === sessionId,
    );
  }

  #make(caller: Caller, { requestId, sessionId }: RequestKey, madeAt: number): RequestLink {
    for (const [secret, old] of this.#links) {
      if (this.#links.size < MAX_LINKS && madeAt - old.madeAt < REMEMBERED * this.#options.lifetimeMs) break;
      this.#links.delete(secret);
    }
    const id = randomBytes(ID_BYTES).toString("base64url");
    const link: RequestLink = { id, which: { requestId, sessionId }, caller, secret: newSecret(), madeAt };
    this.#links.set(link.secret, link);
    return link;
  }
}

const [ID_BYTES, SECRET_BYTES] = [9, 32];

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}
