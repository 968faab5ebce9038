import type { ShownEvent } from "../../../../src/console/wire.ts";
import type { ApproverName } from "../../../../src/domain/approvals/answer-source.ts";
import type { TurnEnded } from "../../../../src/domain/event.ts";
import type { JsonObject } from "../../../../src/domain/json.ts";
import type { PermissionRequest } from "../../../../src/domain/permission.ts";

/** What a reader sees of a session, in order: several events can be one item, and one event several. */

interface Base {
  /** The same as long as it is the same thing, and no other's. */
  readonly key: string;
  /** The event it began with. */
  readonly eventId: number;
  readonly at: number;
  /** The events of it of which a part is left out here. */
  readonly cutIn: readonly number[];
}

/** Place of its base64 in the whole event. */
export interface Picture {
  readonly eventId: number;
  readonly at: readonly (string | number)[];
}

export type Item = PromptItem | TextItem | ThinkingItem | CallItem | RequestItem | TurnItem | LineItem;

export interface PromptItem extends Base {
  readonly kind: "prompt";
  readonly promptId: string;
  readonly text: string;
  readonly pictures: readonly Picture[];
  readonly state: "waiting" | "begun" | "steered" | "dropped";
  readonly why?: string;
  /** When it was sent, if it has waited behind others since. */
  readonly queuedAt?: number;
}

export interface TextItem extends Base {
  readonly kind: "text";
  readonly text: string;
  /** No words of the model: why it has none. */
  readonly isError: boolean;
}

export interface ThinkingItem extends Base {
  readonly kind: "thinking";
  readonly text: string;
}

/** `stopped`: its turn has ended without it. `background`: it has answered, and goes on. */
export type CallState = "running" | "asked" | "background" | "done" | "failed" | "denied" | "stopped";

export interface CallItem extends Base {
  readonly kind: "call";
  readonly id: string;
  /** Undefined where the call itself is further up than what is loaded. */
  readonly name: string | undefined;
  readonly input: JsonObject;
  readonly state: CallState;
  readonly output?: string;
  readonly pictures?: readonly Picture[];
  /** What the tool says beside what the model is told: patches, paths, numbers. */
  readonly structured?: JsonObject;
  readonly endedAt?: number;
  /** What the subagent does that works for this call. */
  readonly children: readonly Item[];
  /** How the work that it has left in the background has ended. */
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

export interface TurnItem extends Base {
  readonly kind: "turn";
  readonly ended: TurnEnded;
  /** The error that it has failed with, in Claude Code's words. */
  readonly cause?: string;
  /** Claude Code's last own words of it. */
  readonly result?: JsonObject;
}

/** One quiet line; `more` is what it is of, as it came. */
export interface LineItem extends Base {
  readonly kind: "line";
  readonly tone: "quiet" | "warn" | "bad";
  readonly text: string;
  readonly more?: unknown;
  readonly pictures?: readonly Picture[];
}

/** The tools of which Claude Code keeps how files were before. */
const EDITING: ReadonlySet<string> = new Set(["Edit", "MultiEdit", "NotebookEdit", "Write"]);

/** Whether files were changed behind this event, by a subagent or by Claude Code itself. */
export function areEdited(items: readonly Item[], after: number): boolean {
  return items.some((item) => {
    if (item.kind !== "call") return false;
    const isEdit = item.eventId > after && item.state === "done" && EDITING.has(item.name ?? "");
    return isEdit || areEdited(item.children, after);
  });
}

/** The fields that every item takes from its first event. `suffix` tells apart items of the same event. */
export function baseOf(event: ShownEvent, suffix = "") {
  return { key: `event ${String(event.id)}${suffix}`, eventId: event.id, at: event.at, cutIn: withCut([], event) };
}

export function withCut(cutIn: readonly number[], { cut, id }: ShownEvent): readonly number[] {
  return cut === true ? [...cutIn, id] : cutIn;
}
