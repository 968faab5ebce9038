/**
 * The name of a task says where in the log its prompt stands, so that nothing has to be kept of it: every server of the
 * store knows it, also after a restart. Nobody can guess one, for both ids in it are random; and whose it is, is looked up.
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

/** How a task stands. */
export interface TaskHead {
  readonly taskId: string;
  /** Where it runs: what every other tool takes. */
  readonly sessionId: string;
  readonly status: "working" | "input_required" | "completed" | "cancelled";
  /** ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly statusMessage: string;
}
