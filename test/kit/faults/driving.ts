import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Server } from "../servers/stdio-server.ts";
import type { World } from "../world.ts";

/** A prompt that is answered at once. */
export const back = `Go on. ${scriptTag([{ text: "Back." }])}`;

/** A prompt that asks for one permission and then writes `hello`. */
export function writing(file: string): string {
  return scriptTag([
    { text: "I write.", tools: [{ name: "Write", input: { file_path: file, content: "hello" } }] },
    { text: "Written." },
  ]);
}

/** Waits until the session asks, and reports what happened instead: a plain loop would only report a timeout. */
export async function waitForRequest(server: Server, sessionId: string) {
  let asked = await server.news(sessionId);
  while (asked.actions.length === 0 && asked.status === "running")
    asked = await server.news(sessionId, asked.nextCursor);
  if (asked.actions.length > 0) return asked;
  throw new Error(`nothing was asked: ${JSON.stringify(asked)}\n${server.stderr()}`);
}

/** Allows the open request of the session, through any server. */
export async function allow(server: Server, sessionId: string) {
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

/** Both at once: a Claude Code that outlives its server for a moment goes on with the turn by itself. */
export async function killAll(server: Server, world: World): Promise<void> {
  process.kill(server.pid, "SIGSTOP");
  for (const { pid } of world.processes()) process.kill(pid, "SIGKILL");
  process.kill(server.pid, "SIGKILL");
  await server.gone;
}
