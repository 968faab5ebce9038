import type { SessionView } from "../session-view.ts";
import { writeTaskId, type TaskHead } from "./task-id.ts";

/** More than comes before a prompt in the events of its own command. */
const FIRST = 64;

interface Begun {
  /** Where the events of the prompt begin. */
  readonly cursor: number;
  readonly warnings: readonly string[];
}

/** The prompt as a task, for a client that knows such; undefined where the log does not have it. */
export async function startTask(view: SessionView, { cursor, warnings }: Begun): Promise<TaskHead | undefined> {
  const begun = await view.read(cursor, FIRST);
  const prompt = begun.find((event) => event.type === "prompt.queued");
  if (!prompt) return undefined;
  const createdAt = new Date(prompt.at).toISOString();
  return {
    taskId: writeTaskId({ sessionId: view.id, eventId: prompt.id, promptId: prompt.data.promptId }),
    sessionId: view.id,
    status: "working",
    createdAt,
    lastUpdatedAt: createdAt,
    statusMessage: ["Claude Code is at work", ...warnings].join(" | "),
  };
}
