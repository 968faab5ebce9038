import { beforeAll, expect, it } from "vitest";

import { LIES } from "../kit/sessions/lies.ts";
import { expectTruth, projectIn, subagent, type Lie } from "../kit/sessions/lying-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Receipts for which Claude Code's own messages count. The whole table is in `test/server/receipts.test.ts`. */

const world = useWorld();
let server: Server;
beforeAll(async () => {
  server = await world.server();
});

const NAMES = [
  "an edit",
  "a failing test called passed",
  "a subagent that edits",
  "a background command",
  "a denied command",
];

/** Claude Code makes the worktree, and keeps one with changes. */
const IN_WORKTREE: Lie = {
  says: "Nothing has changed.",
  does: () => [
    subagent([{ tools: [{ name: "Bash", input: { command: "echo x > new.txt" } }] }], { isolation: "worktree" }),
    { text: "It works." },
  ],
  minimal: {
    files: { added: 1, lines: [1, 0], names: [expect.stringMatching(/worktrees\/agent-\w+\/new\.txt$/)] },
    commands: { run: 1 },
  },
};

const rows: [string, Lie][] = [
  ...NAMES.map((name): [string, Lie] => [name, LIES[name]!]),
  ["a subagent in a worktree of its own", IN_WORKTREE],
];

// Runs one turn at a time, because with many starts at once a look can take longer than the limit of a receipt.
it.each(rows)("the receipt is true of %s, with messages of the real Claude Code", async (_, lie) => {
  const cwd = world.folder();
  projectIn(cwd);
  await expectTruth(server, lie, cwd, world.folder());
});
