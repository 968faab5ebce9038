import type { StartTask } from "../../tools/define.ts";

/**
 * The id of a task names the position of its prompt in the log, so no task is stored: every server of the store can resolve it,
 * also after a restart. It cannot be guessed, since both ids in it are random, and its session's principal is checked.
 */
export interface TaskId {
  readonly sessionId: string;
  /** Of the event that has the prompt. */
  readonly eventId: number;
  readonly promptId: string;
}

const FORM = /^([\w-]{1,100})\.([1-9]\d{0,14})\.([\w-]{1,100})$/;

export function writeTaskId({ eventId, promptId, sessionId }: TaskId): string {
  return `${sessionId}.${String(eventId)}.${promptId}`;
}

export function readTaskId(text: string): TaskId | undefined {
  const [, sessionId, eventId, promptId] = FORM.exec(text) ?? [];
  if (sessionId === undefined || eventId === undefined || promptId === undefined) return undefined;
  return { sessionId, eventId: Number(eventId), promptId };
}

/** More than comes before a prompt in the events of its own command. */
const FIRST = 64;

/** The prompt as a task, for a client that knows such; undefined where the log does not have it. */
export const startTask: StartTask = async (session, { cursor, warnings }) => {
  const begun = await session.read(cursor, FIRST);
  const prompt = begun.find((event) => event.type === "prompt.queued");
  if (!prompt) return undefined;
  const createdAt = new Date(prompt.at).toISOString();
  return {
    taskId: writeTaskId({ sessionId: session.id, eventId: prompt.id, promptId: prompt.data.promptId }),
    sessionId: session.id,
    status: "working",
    createdAt,
    lastUpdatedAt: createdAt,
    statusMessage: ["Claude Code is at work", ...warnings].join(" | "),
  };
};
