import { FakeEngine } from "./fake-engine.ts";
import type { FakeSession } from "./fake-session.ts";

/** Emits messages of a working Claude Code: tool calls and their results. */

export const emitCall = (session: FakeSession, ...ids: string[]) => {
  const content = ids.map((id) => ({ type: "tool_use", id, name: "Bash", input: { command: `run ${id}` } }));
  return session.emit({ type: "message", data: { message: { type: "assistant", message: { content } } } });
};
export const emitOutcome = (session: FakeSession, ids: string[], output = (id: string) => `out of ${id}`) => {
  const content = ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: output(id) }));
  return session.emit({ type: "message", data: { message: { type: "user", message: { content } } } });
};

export const startRunningSession = () => {
  const engine = new FakeEngine();
  const session = engine.add();
  session.startTurn();
  return { engine, session };
};
