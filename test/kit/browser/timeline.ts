import { TimelineReducer } from "../../../console/src/timeline/reducer/timeline-reducer.ts";
import type { CallItem, Item } from "../../../console/src/timeline/reducer/item.ts";
import type { ShownEvent } from "../../../src/console/wire.ts";

/** Events as the page receives them, and the items of its timeline. */

export type Loose = Readonly<Record<string, unknown>>;
export type Draft = { readonly type: string; readonly data: Loose; readonly cut?: true };

/** Gives events ids from `from` on, one second apart. `type` need not be a known type. */
export function numbered(drafts: readonly Draft[], from = 1): ShownEvent[] {
  return drafts.map((draft, at) => {
    const event: ShownEvent = JSON.parse(JSON.stringify({ ...draft, id: from + at, at: (from + at) * 1000 }));
    return event;
  });
}

export function fold(...drafts: Draft[]): readonly Item[] {
  const made = new TimelineReducer();
  for (const event of numbered(drafts)) made.take(event);
  return made.items;
}

export const message = (raw: Loose): Draft => ({ type: "message", data: { message: raw } });
export const assistantSays = (content: unknown, parent: string | null = null, more: Loose = {}) =>
  message({ type: "assistant", message: { content }, parent_tool_use_id: parent, ...more });
export const text = (words: string, parent: string | null = null) =>
  assistantSays([{ type: "text", text: words }], parent);
export const toolCall = (id: string, name: string, input: Loose = {}, parent: string | null = null) =>
  assistantSays([{ type: "tool_use", id, name, input }], parent);
export const toolResult = (id: string, content: unknown, more: Loose = {}, parent: string | null = null) =>
  message({
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: id, content, ...more }] },
    parent_tool_use_id: parent,
  });
export const ended = (more: Loose = {}): Draft => ({
  type: "turn.ended",
  data: {
    turnId: "t",
    outcome: "done",
    isError: false,
    durationMs: 5,
    durationApiMs: 1,
    numTurns: 1,
    costUsd: 0,
    sessionTurns: 1,
    sessionCostUsd: 0,
    ...more,
  },
});
export const prompt = (promptId: string): Draft => ({ type: "prompt.queued", data: { promptId, text: promptId } });
export const started = (...promptIds: string[]): Draft => ({
  type: "turn.started",
  data: { turnId: "t", origin: "prompt", promptIds },
});

export const kinds = (items: readonly Item[]) => items.map(({ kind }) => kind);
export const findCall = (items: readonly Item[], id: string): CallItem => {
  const found = items.find((item) => item.kind === "call" && item.id === id);
  if (found?.kind !== "call") throw new Error(`no call ${id}`);
  return found;
};
