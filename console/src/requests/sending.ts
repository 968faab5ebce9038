import type { AnswerBody, PendingRequest, RequestList } from "../../../src/console/wire.ts";
import { ApiProblem, get, post, messageOf } from "../net/api.ts";
import { answerAlone, isAlone } from "../state/request-page.ts";
import type { Draft } from "./draft.ts";
import { focusNextCard } from "./card-focus.ts";
import { doneWords } from "./words/answer.ts";
import { decidedWords } from "./words/deciders.ts";
import { requestKey } from "./words/shown-requests.ts";

/** Sends an answer once; `draft.outcome` or `draft.problem` gets the result. */
export async function sendAnswer(request: PendingRequest, draft: Draft, body: AnswerBody): Promise<void> {
  if (draft.isSending.value || draft.outcome.value !== "") return;
  draft.isSending.value = true;
  draft.problem.value = "";
  try {
    await (isAlone ? answerAlone(body) : answer(request, body));
    draft.isMine = true;
    draft.outcome.value = doneWords(request, body);
    focusNextCard(draft.key);
  } catch (error) {
    if (isTooLate(error)) {
      draft.outcome.value = await describeEarlierAnswer(request, error);
      focusNextCard(draft.key);
    } else draft.problem.value = problemWords(error);
  } finally {
    draft.isSending.value = false;
  }
}

async function answer({ requestId, sessionId }: PendingRequest, body: AnswerBody): Promise<void> {
  await post(`sessions/${encodeURIComponent(sessionId)}/requests/${encodeURIComponent(requestId)}`, body);
}

function isTooLate(error: unknown): error is ApiProblem {
  return error instanceof ApiProblem && (error.error === "already_answered" || error.status === 404);
}

function problemWords(error: unknown): string {
  const isUnreachable = error instanceof ApiProblem && error.status === 0;
  return `${messageOf(error)} ${isUnreachable ? "Your answer may not have arrived. Send it again when the server is back." : "The request is still open."}`;
}

/** Describes the decision that was made before this page's answer. */
async function describeEarlierAnswer(request: PendingRequest, problem: ApiProblem): Promise<string> {
  const list = isAlone ? undefined : await get<RequestList>("requests").catch(() => undefined);
  const decided = list?.decided.find((each) => requestKey(each) === requestKey(request));
  return decided ? `Already answered: ${decidedWords(decided)}.` : `Already answered. ${problem.message}`;
}
