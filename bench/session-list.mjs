import { filledStore } from "./internals.mjs";
import { startServer } from "./server.mjs";

const [MANY, FEW] = [100_000, 100];
const BASE = `the same of ${String(FEW)}`;

export const sessionList = {
  name: "session-list",
  long: true,
  about: "the first page of the list of sessions, when there are 100,000",
  rows: [
    { row: "page of 100,000 sessions", of: "page", base: BASE, unit: "ms" },
    { row: "page of those that failed, of which there are none", of: "none", base: "of 100: none", unit: "ms" },
  ],
  async run({ figures, progress, rounds, world }) {
    const [many, few] = [await startOn(MANY), await startOn(FEW)];
    for (let round = 0; round < 10 * rounds; round++) {
      await figures.timed(BASE, () => list(few));
      await figures.timed("page", () => list(many));
      await figures.timed("of 100: none", () => list(few, { status: "error" }));
      await figures.timed("none", () => list(many, { status: "error" }));
    }
    await many.close();
    await few.close();

    async function startOn(sessions) {
      const { file } = await filledStore(world, { progress, sessions });
      return startServer(world, ["--store", file]);
    }
  },
};

function list(server, filter = {}) {
  return server.call("claude_code_session", { action: "list", ...filter });
}
