import type { ApproverName } from "../domain/approvals/answer-source.ts";
import { requestOf } from "../domain/event.ts";
import { type PermissionRequest, type OpenRequest } from "../domain/permission.ts";
import type { Scope } from "../domain/principal.ts";
import type { Append, Logger, SessionBackend, SessionRecord } from "../engine/ports.ts";
import type { ApproverPort, Offered, OfferedSession, OfferVerbs, Reception } from "./approver.ts";

/**
 * Offers requests to approvers: follows all sessions of this server, offers each request to the approver that the approval
 * chain names, and withdraws the offer once another approver is asked or the request is answered. Approvers that fetch requests
 * themselves have no port and are skipped.
 */

export interface OffersOptions {
  readonly ports: ReadonlyMap<ApproverName, ApproverPort>;
  readonly store: Pick<SessionBackend, "log" | "rows">;
  /** Called on use only, because the engine starts after `Offers` is constructed. */
  readonly engine: () => OfferVerbs;
  readonly log: Pick<Logger, "error" | "warn">;
}

interface CurrentOffer {
  readonly sessionId: string;
  readonly requestId: string;
  readonly name: ApproverName;
  readonly port: ApproverPort;
  readonly at: number;
}

/**
 * Scopes that the operator grants an approver by naming it in `--approvals`: with `decide`, answers may go beyond
 * `--caller-approves`.
 */
const SCOPES: readonly Scope[] = ["approve", "decide"];

export class Offers {
  readonly #options: OffersOptions;
  /** Open requests by `sessionId`, from the state after the last change. */
  readonly #open = new Map<string, readonly OpenRequest[]>();
  /** Current offers, by `requestId`. */
  readonly #offered = new Map<string, CurrentOffer>();

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  /** Handles a change of a session after the change is stored. Never throws and never waits. */
  onAppended(sessionId: string, { at, events, state: { requests } }: Append): void {
    if (requests.length === 0) this.#open.delete(sessionId);
    else this.#open.set(sessionId, requests);
    for (const offer of this.#offered.values())
      if (offer.sessionId === sessionId && !this.#findOpen(offer)) this.#end(offer);
    for (const { data, type } of events) {
      if (type === "permission.asked" || type === "question.asked") {
        this.#begin({ sessionId, requestId: data.requestId, at }, data);
      } else if (type === "request.passed") this.#begin({ sessionId, requestId: data.requestId, at });
      // Offers again after a change of owner: offers of the dead server, and answers on their way to that server, are lost.
      else if (type === "notice" && data.kind === "owner.changed") {
        for (const { requestId } of requests) this.#begin({ sessionId, requestId, at });
      }
    }
  }

  /**
   * No-op if the approver of the request has no port, or if the request is no longer open (answered by a rule, for example).
   */
  #begin(which: Omit<CurrentOffer, "name" | "port">, request?: PermissionRequest): void {
    const { sessionId, requestId } = which;
    const open = this.#find(sessionId, requestId);
    const name = open?.approver;
    const port = name === undefined ? undefined : this.#options.ports.get(name);
    if (!open || name === undefined || !port) return;
    const offer = { ...which, name, port };
    this.#offered.set(requestId, offer);
    this.#offer(offer, open, request).catch((error: unknown) => this.#failed(offer, error));
  }

  async #offer(offer: CurrentOffer, open: OpenRequest, given: PermissionRequest | undefined): Promise<void> {
    const { requestId, sessionId } = offer;
    const { store } = this.#options;
    const record = store.rows.get(sessionId);
    record.catch(() => undefined);
    const request = given ?? requestOf((await store.log.read(sessionId, open.eventId, 1)).at(0));
    const known = await record;
    if (!request || !known || this.#offered.get(requestId) !== offer) return;
    const session = offeredSession(known);
    const reception = await offer.port.offer(this.#buildOffer(offer, { session, request, open }));
    if (reception.is !== "withdrawn") await this.#report(offer, session, reception);
  }

  /** Reports `reception` to the approval chain: delivered, or unreachable so that the next approver is asked. */
  async #report(
    { name: approver, requestId, sessionId }: CurrentOffer,
    { principal }: OfferedSession,
    reception: Exclude<Reception, { is: "withdrawn" }>,
  ): Promise<void> {
    const engine = this.#options.engine();
    try {
      if (reception.is === "delivered") {
        await engine.delivered(principal, sessionId, [{ requestId, whole: reception.whole, approver }]);
      } else await engine.pass(principal, sessionId, { requestId, from: approver, why: reception.is });
    } catch (error) {
      // Without the report, the request still ends at its deadline.
      const why = { approver, sessionId, requestId, error: String(error) };
      this.#options.log.warn("the result of an offer could not be reported to its session", why);
    }
  }

  #buildOffer(offer: CurrentOffer, about: Pick<Offered, "request" | "open" | "session">): Offered {
    const { at, name, requestId, sessionId } = offer;
    const caller = { principal: about.session.principal, scopes: SCOPES };
    return {
      ...about,
      sessionId,
      at,
      until: () => deadlineOf(this.#findOpen(offer)),
      answer: async (given) => {
        await this.#options.engine().answer(caller, sessionId, { ...given, requestId, by: name });
      },
    };
  }

  #failed({ name, requestId, sessionId }: CurrentOffer, error: unknown): void {
    const why = { approver: name, sessionId, requestId, error: String(error) };
    this.#options.log.error("a request could not be offered", why);
  }

  #end({ port, requestId }: CurrentOffer): void {
    this.#offered.delete(requestId);
    port.withdraw(requestId);
  }

  /** Returns the request while it is with this approver, otherwise `undefined`. */
  #findOpen({ name, requestId, sessionId }: CurrentOffer): OpenRequest | undefined {
    const open = this.#find(sessionId, requestId);
    return open?.approver === name ? open : undefined;
  }

  #find(sessionId: string, requestId: string): OpenRequest | undefined {
    return this.#open.get(sessionId)?.find((request) => request.requestId === requestId);
  }
}

function deadlineOf(open: OpenRequest | undefined): number {
  return open?.approverDeadline ?? 0;
}

/** Facts about a session that approvers may see. */
export function offeredSession({ principal, spec, title = spec.title }: SessionRecord): OfferedSession {
  return { principal, ...(title !== undefined && { title }), cwd: spec.cwd };
}
