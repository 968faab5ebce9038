import type { ShownEvent } from "../../../../src/console/wire.ts";
import type { Receipt } from "../../../../src/domain/receipt.ts";
import { baseOf, type VerificationItem, withCut } from "./item.ts";
import type { TimelineIndex } from "./timeline-index.ts";

type EvidenceEvent = Extract<ShownEvent, { type: `verification.${string}` | "turn.baseline" | "turn.receipt" }>;

export function isEvidence(event: ShownEvent): event is EvidenceEvent {
  return TYPES.has(event.type);
}

const TYPES: ReadonlySet<string> = new Set<EvidenceEvent["type"]>([
  "turn.baseline",
  "verification.started",
  "verification.ended",
  "turn.receipt",
]);

/** Reduces events at the end of a turn: runs of its verification, and its receipt. */
export class EvidenceReducer {
  readonly #index: TimelineIndex;
  /** Event that began the turn; 0 if before the loaded events. */
  #turnStart = 0;
  #run: VerificationItem | undefined;

  constructor(index: TimelineIndex) {
    this.#index = index;
  }

  take(event: EvidenceEvent): void {
    if (event.type === "verification.started") this.#startRun(event);
    else if (event.type === "verification.ended") this.#endRun(event);
    else if (event.type === "turn.receipt") this.#addReceipt(event);
  }

  startTurn(eventId: number): void {
    this.#turnStart = eventId;
  }

  /** Marks a run that got no result: Claude Code went on, or the server died. */
  stopRun(): void {
    if (this.#run) this.#index.put({ ...this.#run, state: "stopped" });
    this.#run = undefined;
  }

  #startRun(event: Extract<EvidenceEvent, { type: "verification.started" }>): void {
    this.stopRun();
    const { attempt, commands, of, turnId } = event.data;
    this.#run = { kind: "verification", ...baseOf(event), turnId, commands, attempt, of, state: "running" };
    this.#index.add(this.#run, "");
  }

  #endRun(event: Extract<EvidenceEvent, { type: "verification.ended" }>): void {
    const { turnId, verification } = event.data;
    const ended = { state: verification.status, ended: verification };
    const run = this.#run?.turnId === turnId ? this.#run : undefined;
    this.#run = undefined;
    if (run) return this.#index.put({ ...run, ...ended, cutIn: withCut(run.cutIn, event) });
    const { attempts: attempt, of } = verification;
    this.#index.add({ kind: "verification", ...baseOf(event), turnId, commands: [], attempt, of, ...ended }, "");
  }

  /** Leaves out an empty receipt of a turn that used no tool. */
  #addReceipt(event: Extract<EvidenceEvent, { type: "turn.receipt" }>): void {
    const { receipt } = event.data;
    if (!isEmpty(receipt) || this.#hasCalls()) this.#index.add({ kind: "receipt", ...baseOf(event), receipt }, "");
  }

  #hasCalls(): boolean {
    return [...this.#index.all()].some(({ eventId, kind }) => kind === "call" && eventId > this.#turnStart);
  }
}

/** Ignores requests: a request of a verification belongs to no tool, any other to a call. */
function isEmpty({ background, commands, commits, denied, files, gitFiles, outside }: Receipt): boolean {
  const listed = [commands, commits, files, gitFiles, outside];
  return denied + background === 0 && listed.every((list) => list.length === 0);
}
