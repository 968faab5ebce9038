import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Server } from "../servers/stdio-server.ts";
import type { World } from "../world.ts";

/** Prompt with the answer "Back." at once. */
export const BACK_PROMPT = `Go on. ${scriptTag([{ text: "Back." }])}`;

/** Prompt that needs permission to write `hello` to `file`. */
export function writing(file: string): string {
  return scriptTag([
    { text: "I write.", tools: [{ name: "Write", input: { file_path: file, content: "hello" } }] },
    { text: "Written." },
  ]);
}

/** Waits until the session asks. Throws with the last answer, while a plain loop would only time out. */
export async function waitForRequest(server: Server, sessionId: string) {
  let asked = await server.news(sessionId);
  while (asked.actions.length === 0 && asked.status === "running")
    asked = await server.news(sessionId, asked.nextCursor);
  if (asked.actions.length > 0) return asked;
  throw new Error(`nothing was asked: ${JSON.stringify(asked)}\n${server.stderr()}`);
}

/** Allows the open request of the session through `server`, which need not be the owner. */
export async function allowRequest(server: Server, sessionId: string) {
  const asked = await waitForRequest(server, sessionId);
  const { requestId } = asked.actions[0] ?? {};
  const answer = {
    action: "respond_permission",
    sessionId,
    cursor: asked.nextCursor,
    requestId,
    decision: "allow",
    until: "end",
  };
  return server.call("claude_code_check", answer);
}

/** Stops the server first (SIGSTOP), so that no Claude Code outlives it and continues the turn alone. */
export async function killAll(server: Server, world: World): Promise<void> {
  process.kill(server.pid, "SIGSTOP");
  for (const { pid } of world.processes()) process.kill(pid, "SIGKILL");
  process.kill(server.pid, "SIGKILL");
  await server.gone;
}
