import type { ApproverName } from "../domain/approvals/answer-source.ts";
import { requestOf } from "../domain/event.ts";
import { type PermissionRequest, type OpenRequest } from "../domain/permission.ts";
import type { Scope } from "../domain/principal.ts";
import type { Append, Logger, SessionBackend, SessionRecord } from "../engine/ports.ts";
import type { ApproverPort, Offered, OfferedSession, OfferVerbs, Reception } from "./approver.ts";

/**
 * Offers requests to approvers: follows all sessions of this server, offers each request on the approver's turn, and withdraws
 * the request after the turn. Approvers that fetch requests themselves have no port and are skipped.
 */

export interface OffersOptions {
  readonly ports: ReadonlyMap<ApproverName, ApproverPort>;
  readonly store: Pick<SessionBackend, "log" | "rows">;
  /** Called on use only, because the engine starts after `Offers` is constructed. */
  readonly engine: () => OfferVerbs;
  readonly log: Pick<Logger, "error" | "warn">;
}

interface ApproverTurn {
  readonly sessionId: string;
  readonly requestId: string;
  readonly name: ApproverName;
  readonly port: ApproverPort;
  readonly at: number;
}

/** Naming an approver in `--approvals` grants these scopes, as for a deciding program. */
const SCOPES: readonly Scope[] = ["approve", "decide"];

export class Offers {
  readonly #options: OffersOptions;
  /** Open requests by `sessionId`, from the state after the last change. */
  readonly #open = new Map<string, readonly OpenRequest[]>();
  /** Current offers, by `requestId`. */
  readonly #offered = new Map<string, ApproverTurn>();

  constructor(options: OffersOptions) {
    this.#options = options;
  }

  /** Handles a change of a session once durable. Never throws and never waits. */
  onAppended(sessionId: string, { at, events, state: { requests } }: Append): void {
    if (requests.length === 0) this.#open.delete(sessionId);
    else this.#open.set(sessionId, requests);
    for (const turn of this.#offered.values())
      if (turn.sessionId === sessionId && !this.#findOpen(turn)) this.#end(turn);
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

  /** No-op if the request's approver has no port, or the request was answered at once (by a rule, for example). */
  #begin(which: Omit<ApproverTurn, "name" | "port">, request?: PermissionRequest): void {
    const { sessionId, requestId } = which;
    const open = this.#find(sessionId, requestId);
    const name = open?.approver;
    const port = name === undefined ? undefined : this.#options.ports.get(name);
    if (!open || name === undefined || !port) return;
    const turn = { ...which, name, port };
    this.#offered.set(requestId, turn);
    this.#offer(turn, open, request).catch((error: unknown) => this.#failed(turn, error));
  }

  async #offer(turn: ApproverTurn, open: OpenRequest, given: PermissionRequest | undefined): Promise<void> {
    const { requestId, sessionId } = turn;
    const { store } = this.#options;
    const record = store.rows.get(sessionId);
    record.catch(() => undefined);
    const request = given ?? requestOf((await store.log.read(sessionId, open.eventId, 1)).at(0));
    const known = await record;
    if (!request || !known || this.#offered.get(requestId) !== turn) return;
    const session = offeredSession(known);
    const reception = await turn.port.offer(this.#buildOffer(turn, { session, request, open }));
    if (reception.is !== "withdrawn") await this.#report(turn, session, reception);
  }

  /** Reports `reception` to the approval chain: delivered, or unreachable so that the next approver is asked. */
  async #report(
    { name: approver, requestId, sessionId }: ApproverTurn,
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

  #buildOffer(turn: ApproverTurn, about: Pick<Offered, "request" | "open" | "session">): Offered {
    const { at, name, requestId, sessionId } = turn;
    const caller = { principal: about.session.principal, scopes: SCOPES };
    return {
      ...about,
      sessionId,
      at,
      until: () => deadlineOf(this.#findOpen(turn)),
      answer: async (given) => {
        await this.#options.engine().answer(caller, sessionId, { ...given, requestId, by: name });
      },
    };
  }

  #failed({ name, requestId, sessionId }: ApproverTurn, error: unknown): void {
    const why = { approver: name, sessionId, requestId, error: String(error) };
    this.#options.log.error("a request could not be offered", why);
  }

  #end({ port, requestId }: ApproverTurn): void {
    this.#offered.delete(requestId);
    port.withdraw(requestId);
  }

  /** Returns the request while it is with this approver, otherwise `undefined`. */
  #findOpen({ name, requestId, sessionId }: ApproverTurn): OpenRequest | undefined {
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
