import type { ShownEvent } from "../../../../src/console/wire.ts";
import type { ApproverName } from "../../../../src/domain/approvals/answer-source.ts";
import type { TurnEnded } from "../../../../src/domain/event.ts";
import type { JsonObject } from "../../../../src/domain/json.ts";
import type { PermissionRequest } from "../../../../src/domain/permission.ts";
import type { Receipt } from "../../../../src/domain/receipt.ts";
import type { Verification, VerificationStatus } from "../../../../src/domain/verification.ts";

/** Items of a timeline, in order. Several events can form an item, and an event can form several items. */

interface Base {
  /** Stable across updates of the item, and unique in the timeline. */
  readonly key: string;
  /** First event of the item. */
  readonly eventId: number;
  readonly at: number;
  /** Ids of the item's events that are `cut`. */
  readonly cutIn: readonly number[];
}

/** Path of the base64 in the whole event. */
export interface Picture {
  readonly eventId: number;
  readonly at: readonly (string | number)[];
}

export type Item =
  PromptItem | TextItem | ThinkingItem | CallItem | RequestItem | VerificationItem | ReceiptItem | TurnItem | LineItem;

export interface PromptItem extends Base {
  readonly kind: "prompt";
  readonly promptId: string;
  readonly text: string;
  readonly pictures: readonly Picture[];
  readonly state: "waiting" | "begun" | "steered" | "dropped";
  readonly why?: string;
  /** Time of sending, if the prompt was queued. */
  readonly queuedAt?: number;
}

export interface TextItem extends Base {
  readonly kind: "text";
  readonly text: string;
  /** True for an error in place of words of the model. */
  readonly isError: boolean;
}

export interface ThinkingItem extends Base {
  readonly kind: "thinking";
  readonly text: string;
}

/** `stopped`: the turn ended before the call did. `background`: the call has returned, but its task goes on. */
export type CallState = "running" | "asked" | "background" | "done" | "failed" | "denied" | "stopped";

export interface CallItem extends Base {
  readonly kind: "call";
  readonly id: string;
  /** `undefined` if the call lies before the loaded events. */
  readonly name: string | undefined;
  readonly input: JsonObject;
  readonly state: CallState;
  readonly output?: string;
  readonly pictures?: readonly Picture[];
  /** Result that the tool reports in addition to the text for the model: patches, paths, numbers. */
  readonly structured?: JsonObject;
  readonly endedAt?: number;
  /** Steps of the subagent that works for this call. */
  readonly children: readonly Item[];
  /** Progress or result of the task left in the background. */
  readonly summary?: string;
}

export interface RequestItem extends Base {
  readonly kind: "request";
  readonly request: PermissionRequest;
  readonly passed: readonly {
    readonly from: ApproverName;
    readonly to: ApproverName;
    readonly why: string;
    readonly at: number;
  }[];
  readonly answer?: Extract<ShownEvent, { type: "permission.answered" }>["data"] & { readonly at: number };
}

/** Run of the commands of a verification, or its result if nothing was run. */
export interface VerificationItem extends Base {
  readonly kind: "verification";
  readonly turnId: string;
  /** `stopped`: the run has no result; another run or the end of the turn followed. */
  readonly state: "running" | "stopped" | VerificationStatus;
  /** Commands to run; `[]` if not in the loaded events. */
  readonly commands: readonly string[];
  readonly attempt: number;
  readonly of: number;
  readonly ended?: Verification;
}

/** Changes and commands that the server saw in a turn. */
export interface ReceiptItem extends Base {
  readonly kind: "receipt";
  readonly receipt: Receipt;
}

export interface TurnItem extends Base {
  readonly kind: "turn";
  readonly ended: TurnEnded;
  /** Error of a failed turn, in Claude Code's words. */
  readonly cause?: string;
  /** Final `result` message of Claude Code. */
  readonly result?: JsonObject;
}

/** Single quiet line; `more` is the raw data. */
export interface LineItem extends Base {
  readonly kind: "line";
  readonly tone: "quiet" | "warn" | "bad";
  readonly text: string;
  readonly more?: unknown;
  readonly pictures?: readonly Picture[];
}

/** Tools before which Claude Code saves file checkpoints. */
const EDITING: ReadonlySet<string> = new Set(["Edit", "MultiEdit", "NotebookEdit", "Write"]);

/** True if a file was edited after the event `after`, by Claude Code or by a subagent. */
export function hasEditsAfter(items: readonly Item[], after: number): boolean {
  return items.some((item) => {
    if (item.kind !== "call") return false;
    const isEdit = item.eventId > after && item.state === "done" && EDITING.has(item.name ?? "");
    return isEdit || hasEditsAfter(item.children, after);
  });
}

/** Fields that each item takes from its first event. `suffix` distinguishes items of one event. */
export function baseOf(event: ShownEvent, suffix = "") {
  return { key: `event ${String(event.id)}${suffix}`, eventId: event.id, at: event.at, cutIn: withCut([], event) };
}

export function withCut(cutIn: readonly number[], { cut, id }: ShownEvent): readonly number[] {
  return cut === true ? [...cutIn, id] : cutIn;
}
