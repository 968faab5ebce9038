import { readFileSync } from "node:fs";
import { join } from "node:path";

import { RawLive } from "./raw.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

/** Answers per round of each kind. */
const ANSWERS = 3;

const RAW = "raw canUseTool: allow to run";

export const permission = {
  name: "permission",
  about: "from the answer to a permission request until the tool runs",
  rows: [{ row: "answer to tool", of: "answer", base: RAW, unit: "ms" }],
  async run({ figures, progress, rounds, world }) {
    const cwd = world.folder();
    const server = await startServer(world);
    const sessionId = await server.begin(prompt({ text: "hi" }), { cwd });
    await server.end(sessionId);
    let allowedAt = 0;
    const canUseTool = (_tool, input) => {
      allowedAt = Date.now();
      return Promise.resolve({ behavior: "allow", updatedInput: input });
    };
    const live = new RawLive(world, { canUseTool });
    await live.turn(prompt({ text: "hi" }));
    for (let round = 0; round < rounds; round++) {
      progress(`round ${String(round + 1)} of ${String(rounds)}`);
      for (let answer = 0; answer < ANSWERS; answer++) {
        const file = join(cwd, `${String(round)}-${String(answer)}`);
        await live.turn(stamp(`${file}-raw`));
        figures.note(RAW, ranAt(`${file}-raw`) - allowedAt);
        figures.note("answer", await allowed(server, sessionId, file));
      }
    }
    await live.close();
    await server.close();
  },
};

/** Returns a prompt whose tool writes its time to `file`, by the clock of this process. */
function stamp(file) {
  const input = { command: `date +%s%3N > ${file}`, description: "Tell the time" };
  return prompt({ tools: [{ name: "Bash", input }] }, { text: "done" });
}

function ranAt(file) {
  return Number(readFileSync(file, "utf8"));
}

async function allowed(server, sessionId, file) {
  const { nextCursor: cursor } = await server.call("claude_code_reply", { sessionId, prompt: stamp(file) });
  const asked = await server.call("claude_code_check", { action: "poll", sessionId, cursor, waitMs: 45_000 });
  const { requestId } = asked.actions[0];
  const decision = { action: "respond_permission", sessionId, requestId, decision: "allow" };
  const began = Date.now();
  await server.call("claude_code_check", { ...decision, until: "end", waitMs: 45_000 });
  return ranAt(file) - began;
}
