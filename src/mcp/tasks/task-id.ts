import { JsonObject, parseJson } from "../../domain/json.ts";
import type { StartTask } from "../../tools/define.ts";

/**
 * Id of a task: the position of its prompt in the log. No task is stored, so every server of the store can resolve the id, even
 * after a restart. Cannot be guessed, because both ids inside are random; the principal of the session is also checked.
 */
export interface TaskId {
  readonly sessionId: string;
  /** Id of the `prompt.queued` event. */
  readonly eventId: number;
  readonly promptId: string;
  /** Arguments that shape the answer. They reveal and allow nothing, so a client may change them. */
  readonly shape?: JsonObject;
}

const TASK_ID = /^([\w-]{1,100})\.([1-9]\d{0,14})\.([\w-]{1,100})(?:\.([\w-]{1,200}))?$/;

export function writeTaskId({ eventId, promptId, sessionId, shape = {} }: TaskId): string {
  const more = Object.keys(shape).length > 0 ? `.${Buffer.from(JSON.stringify(shape)).toString("base64url")}` : "";
  return `${sessionId}.${String(eventId)}.${promptId}${more}`;
}

export function readTaskId(text: string): TaskId | undefined {
  const [, sessionId, eventId, promptId, more] = TASK_ID.exec(text) ?? [];
  if (sessionId === undefined || eventId === undefined || promptId === undefined) return undefined;
  const id = { sessionId, eventId: Number(eventId), promptId };
  if (more === undefined) return id;
  const { data: shape } = JsonObject.safeParse(parseJson(Buffer.from(more, "base64url").toString()));
  return shape && { ...id, shape };
}

/** Maximum number of events read to find the prompt; more than a command writes before its prompt. */
const MAX_EVENTS_READ = 64;

/** Presents a prompt as a task for a client with the Tasks extension. Resolves to `undefined` if the log has no such prompt. */
export const startTask: StartTask = async (session, { cursor, shape = {}, warnings }) => {
  const begun = await session.read(cursor, MAX_EVENTS_READ);
  const prompt = begun.find((event) => event.type === "prompt.queued");
  if (!prompt) return undefined;
  const createdAt = new Date(prompt.at).toISOString();
  return {
    taskId: writeTaskId({ sessionId: session.id, eventId: prompt.id, promptId: prompt.data.promptId, shape }),
    sessionId: session.id,
    status: "working",
    createdAt,
    lastUpdatedAt: createdAt,
    statusMessage: ["Claude Code is at work", ...warnings].join(" | "),
  };
};
