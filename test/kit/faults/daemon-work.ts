import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer } from "../clients/connection.ts";
import type { Server } from "../servers/stdio-server.ts";

/** Work of a daemon while a second daemon of the same name starts. */

export async function runShortTurn(client: Server, cwd: string): Promise<Answer> {
  return client.call("claude_code", { prompt: scriptTag([{ text: "done" }]), cwd, waitMs: 40_000 });
}

export const AT_WORK = {
  "has started nothing": async (client) => client.call("claude_code_session", { action: "list" }),
  "has an idle Claude Code and a spare": runShortTurn,
  "runs a turn": async (client, cwd) =>
    client.call("claude_code", { prompt: scriptTag([{ text: "late", gateBefore: "never" }]), cwd }),
} satisfies Record<string, (client: Server, cwd: string) => Promise<Answer>>;
