import { execFile } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { mainProgram, startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const run = promisify(execFile);

/** Turns of each kind in a round. */
const TURNS = 4;
/** Files in a folder of the work tree. */
const IN_A_FOLDER = 100;
/** Time after which git trusts the times of a file in its index, ms. */
const SETTLED_MS = 1_100;

const OFF = "--receipt off";

export const turnEnd = benchmark({ name: "turn-end", files: 10_000, mostMs: 60 });
export const turnEndLarge = { ...benchmark({ name: "turn-end-large", files: 100_000, mostMs: 500 }), long: true };

function benchmark({ files, mostMs, name }) {
  const tree = `work tree of ${files.toLocaleString("en")} files`;
  return {
    name,
    about: `the end of a turn with an edit, with receipts, in a ${tree}`,
    rows: [
      { row: `end of a turn, ${tree}`, of: "end", base: OFF, unit: "ms", atMostMore: mostMs },
      { row: "look at the folders before the turn", of: "look", unit: "ms" },
      { row: "turn with an edit", of: "turn", base: `${OFF}: turn`, unit: "ms" },
    ],
    async run({ figures, progress, rounds, world }) {
      progress("makes the work trees");
      const [watched, unwatched] = await makeTrees(world, files);
      const sides = [
        { ...(await open(world, watched, "on")), end: "end", turn: "turn" },
        { ...(await open(world, unwatched, "off")), end: OFF, turn: `${OFF}: turn` },
      ];
      for (let round = 1; round <= rounds; round++) {
        progress(`round ${String(round)} of ${String(rounds)}`);
        for (let turn = 0; turn < TURNS; turn++) {
          for (const side of sides) await figures.timed(side.turn, async () => side.edit());
        }
      }
      for (const side of sides) {
        const events = await side.close();
        for (const { end, look } of timesIn(events).slice(-rounds * TURNS)) {
          figures.note(side.end, end);
          figures.note("look", look);
        }
      }
    },
  };
}

/** Makes two equal work trees with one commit each. */
async function makeTrees({ environment, home }, files) {
  const tree = join(home, "tree");
  for (let folder = 0; folder < files / IN_A_FOLDER; folder++) {
    const path = join(tree, `src-${String(folder % 10)}`, `part-${String(folder)}`);
    mkdirSync(path, { recursive: true });
    for (let file = 0; file < IN_A_FOLDER; file++) {
      writeFileSync(join(path, `${String(file)}.ts`), `export const value = ${String(folder * IN_A_FOLDER + file)};\n`);
    }
  }
  const copy = join(home, "copy");
  cpSync(tree, copy, { recursive: true });
  await sleep(SETTLED_MS);
  for (const cwd of [tree, copy]) {
    const git = async (...args) =>
      run("git", ["-c", "gc.auto=0", "-c", "user.name=bench", "-c", "user.email=bench@localhost", ...args], {
        cwd,
        env: environment,
        maxBuffer: Infinity,
      });
    await git("init", "--quiet");
    await git("add", ".");
    await git("commit", "--quiet", "-m", "Start");
  }
  return [tree, copy];
}

/** Starts a server with a session that has read and written a file of `cwd`. */
async function open(world, cwd, receipt) {
  const store = join(world.home, `${receipt}.db`);
  const server = await startServer(world, ["--store", store, "--receipt", receipt]);
  const file = join(cwd, "src-0", "part-0", "0.ts");
  let edits = 0;
  const write = () => {
    edits += 1;
    const input = { file_path: file, content: `export const value = -${String(edits)};\n` };
    return [{ tools: [{ name: "Write", input }] }, { text: "Done." }];
  };
  const read = { tools: [{ name: "Read", input: { file_path: file } }] };
  const sessionId = await server.begin(prompt(read, ...write()), { cwd, allowedTools: ["Read", "Write"] });
  await server.end(sessionId);
  return {
    edit: async () => server.turn(sessionId, prompt(...write())),
    /** Closes the server, and resolves to the events of the session. */
    async close() {
      await server.close();
      const args = [mainProgram(), "sessions", "export", sessionId, "--store", store];
      const { stdout } = await run(process.execPath, args, { env: world.environment, maxBuffer: Infinity });
      return stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
    },
  };
}

/** Returns the times of each turn, ms: from the last result of Claude Code to the end, and of the look before. */
function timesIn(events) {
  const times = [];
  let [started, looked, result] = [];
  for (const { at, data, type } of events) {
    if (type === "turn.started") [started, looked] = [at];
    else if (type === "turn.baseline") looked = at - started;
    else if (type === "message" && data.message.type === "result") result = at;
    else if (type === "turn.ended") times.push({ end: at - result, look: looked });
  }
  return times;
}
