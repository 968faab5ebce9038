import type {
  Approver,
  ApproverHttp,
  ApproverPort,
  OfferVerbs,
  OutgoingMessages,
  StartedApprover,
} from "../approvers/approver.ts";
import { APPROVERS } from "../approvers/approvers.ts";
import { Offers } from "../approvers/offers.ts";
import { parseApprovals } from "../config/approvals/approvals-flag.ts";
import type { Config } from "../config/schema.ts";
import type { ApproverName } from "../domain/approvals/answer-source.ts";
import type { Append, Logger, SessionBackend } from "../engine/ports.ts";
import type { Masker } from "../log/mask.ts";
import type { Audit } from "../tools/audit.ts";

/** Starts the approvers of the configuration. */

export interface ApproverDependencies {
  readonly config: Config;
  readonly secrets: ReadonlyMap<ApproverName, string>;
  readonly version: string;
  readonly store: Pick<SessionBackend, "log" | "nodeId" | "outbox" | "rows">;
  /** Must not be called during the start, because the engine does not exist yet. */
  readonly engine: () => OfferVerbs;
  readonly http: ApproverHttp | undefined;
  readonly audit: Audit | undefined;
  readonly masker: Masker;
  readonly log: Logger;
}

export interface StartedApprovers {
  readonly offers: { readonly onAppended: (sessionId: string, change: Append) => void } | undefined;
  readonly outgoing: readonly OutgoingMessages[];
  /** Ends all approvers. Deliveries under way get up to `graceMs`. */
  close(graceMs: number): Promise<void>;
}

/** Starts each approver in use by `config`. */
export async function startApprovers(dependencies: ApproverDependencies): Promise<StartedApprovers> {
  const { engine, log, store } = dependencies;
  const { approvers } = parseApprovals(dependencies.config.approvals);
  const all = await Promise.all(APPROVERS.map(async (approver) => startApprover(approver, dependencies, approvers)));
  const started = all.flatMap((each) => each ?? []);
  const ports = new Map(
    started.flatMap(({ name, port }): [ApproverName, ApproverPort][] => (port ? [[name, port]] : [])),
  );
  return {
    offers: ports.size === 0 ? undefined : new Offers({ ports, store, engine, log }),
    outgoing: started.flatMap(({ outgoing }) => outgoing ?? []),
    close: async (graceMs) => void (await Promise.all(started.map(async ({ close }) => close?.(graceMs)))),
  };
}

async function startApprover(
  { name, start }: Approver,
  { audit, config, http, log, masker, secrets, store, version }: ApproverDependencies,
  approvalChain: readonly ApproverName[],
): Promise<(StartedApprover & { readonly name: ApproverName }) | undefined> {
  const about = { config, isNamed: approvalChain.includes(name), secret: secrets.get(name), version };
  const started = await start?.({ ...about, store, http, audit, mask: (fields) => masker.fields(fields), log });
  return started && { ...started, name };
}
