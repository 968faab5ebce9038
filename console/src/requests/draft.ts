import { signal, type Signal } from "@preact/signals";
import type { PendingRequest } from "../../../src/console/wire.ts";
import { requests } from "../state/live.ts";
import { editableOf } from "./words/answer.ts";
import type { Doubt } from "./words/misclick-guard.ts";
import { NO_CHOICE, questionsIn, type Choice } from "./words/questions.ts";
import { requestKey } from "./words/shown-requests.ts";

/** Unfinished answer. Kept in `drafts`, outside of the cards, so that neither a new list nor another view loses the answer. */
export interface Draft {
  readonly key: string;
  /** Field that is open in the form. */
  readonly open: Signal<"nothing" | "message" | "edit">;
  readonly message: Signal<string>;
  readonly edited: Signal<string>;
  readonly choices: Signal<readonly Choice[]>;
  readonly isSending: Signal<boolean>;
  /** Error in the typed text, or refusal of the server. */
  readonly problem: Signal<string>;
  /** Outcome of the request; "" while open. */
  readonly outcome: Signal<string>;
  /** True if the field was just opened, so that `takeFocus` moves the focus there once. */
  takesFocus: boolean;
  /** True if this page sent the answer. */
  isMine: boolean;
}

const drafts = new Map<string, Draft>();

export function getDraft(request: PendingRequest): Draft {
  const key = requestKey(request);
  const known = drafts.get(key);
  if (known) return known;
  const draft: Draft = {
    key,
    open: signal("nothing"),
    message: signal(""),
    edited: signal(editableOf(request).text),
    choices: signal(questionsIn(request.input).map(() => NO_CHOICE)),
    isSending: signal(false),
    problem: signal(""),
    outcome: signal(""),
    takesFocus: false,
    isMine: false,
  };
  dropOldDrafts();
  drafts.set(key, draft);
  return draft;
}

const MAX_DRAFTS = 200;

/** Drops drafts of requests that are no longer open, above `MAX_DRAFTS`. */
function dropOldDrafts(): void {
  if (drafts.size < MAX_DRAFTS) return;
  const wanted = new Set(requests.peek().map(requestKey));
  for (const key of drafts.keys()) if (!wanted.has(key)) drafts.delete(key);
}

/** Stores typed text and clears `problem`. */
export function setText(draft: Draft, filled: { readonly message?: string; readonly edited?: string }): void {
  if (filled.message !== undefined) draft.message.value = filled.message;
  if (filled.edited !== undefined) draft.edited.value = filled.edited;
  draft.problem.value = "";
}

export function setChoices(draft: Draft, choices: readonly Choice[]): void {
  draft.choices.value = choices;
  draft.problem.value = "";
}

/** Messages for a press that may have been meant for another card. */
export const DOUBTS: Readonly<Record<Doubt, string>> = {
  new: "This request just appeared. Review it, then click again.",
  moved: "The list moved. Check that you mean this request, then click again.",
  focused: "The focus just moved to this request. Review it, then press the key again.",
};

export function showProblem(draft: Draft, problem: string): void {
  draft.problem.value = problem;
}

export function open(draft: Draft, what: "nothing" | "message" | "edit"): void {
  draft.problem.value = "";
  draft.open.value = what;
  draft.takesFocus = true;
}

/** Returns `takesFocus` once: when a view with an open field comes back, the field must not take the focus. */
export function takeFocus(draft: Draft): boolean {
  const { takesFocus } = draft;
  draft.takesFocus = false;
  return takesFocus;
}

/** True if this page sent the answer; false after `dropOldDrafts` has dropped the draft. */
export function isMine(of: Parameters<typeof requestKey>[0]): boolean {
  return drafts.get(requestKey(of))?.isMine === true;
}
