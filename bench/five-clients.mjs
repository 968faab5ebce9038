import { mkdtempSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { withFreshState } from "./daemons.mjs";
import { processesAround, proportionalMb } from "./processes.mjs";
import { clientOf, mainProgram } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
const ROUNDS = 3;
/**
 * Interval of looks at the processes, ms, and number of looks with an equal result after which the processes count as settled.
 */
const LOOK_MS = 500;
const LOOKS = 16;

/** Environments in which people start clients. Each client also has programs and a key of its own. */
const PLACES = {
  terminal: { TERM: "xterm-256color", TERM_PROGRAM: "a-terminal", TERM_SESSION_ID: "w0t0p0" },
  editor: {
    VSCODE_PID: "4242",
    VSCODE_IPC_HOOK: "/run/user/1000/vscode-1.sock",
    VSCODE_GIT_IPC_HANDLE: "/run/user/1000/vscode-git-1.sock",
    ELECTRON_RUN_AS_NODE: "1",
  },
  "ssh -A": {
    SSH_AUTH_SOCK: "/tmp/ssh-one/agent.1",
    SSH_CONNECTION: "10.0.0.1 50022 10.0.0.2 22",
    SSH_TTY: "/dev/pts/1",
  },
  "another ssh -A": { SSH_AUTH_SOCK: "/tmp/ssh-two/agent.2", SSH_CONNECTION: "10.0.0.1 50033 10.0.0.2 22" },
  "project with its own Node": {
    NVM_DIR: "/home/someone/.nvm",
    NVM_BIN: "/home/someone/.nvm/versions/node/v20.20.2/bin",
    NVM_INC: "/home/someone/.nvm/versions/node/v20.20.2/include/node",
    NODE_ENV: "development",
  },
};

/** Kinds of processes by parts of their command lines. The first match counts. */
const KINDS = {
  "Claude Codes, spares included": ["stream-json"],
  shims: ["shim/shim.js"],
  daemons: ["main.js daemon run"],
  clients: ["main.js serve"],
};

export const fiveClients = {
  name: "five-clients",
  long: true,
  rounds: ROUNDS,
  about: "five clients with five environments on one store, each with a session that has ended its turn",
  rows: [
    { row: "processes", of: "processes", unit: "processes" },
    { row: "memory of all (PSS)", of: "memory", unit: "MB" },
    ...Object.keys(KINDS).flatMap((kind) => [
      { row: kind, of: kind, unit: "processes" },
      { row: `${kind}: memory`, of: `${kind}: memory`, unit: "MB" },
    ]),
  ],
  async run({ figures, progress, rounds, world }) {
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${String(round)} of ${String(rounds)}`);
      await withFreshState(world, async (fresh) => measure(fresh, figures), { spares: 1 });
      await world.quiet();
    }
  },
};

async function measure(world, figures) {
  const clients = [];
  for (const [place, variables] of Object.entries(PLACES)) clients.push(await clientIn(world, place, variables));
  note(figures, await settled(world));
  for (const client of clients) await client.close();
}

/** Starts a client without flags, as most client configurations do. */
async function clientIn(world, place, variables) {
  const { environment } = world;
  const env = {
    ...environment,
    ...variables,
    PATH: [mkdtempSync(join(world.home, "bin-")), environment.PATH].join(delimiter),
    ANTHROPIC_API_KEY: `sk-ant-of-${place.replaceAll(" ", "-")}`,
  };
  const program = clientOf(process.execPath, [mainProgram(), "serve"], env);
  await program.connect();
  const { structuredContent: answer } = await program.call("claude_code", {
    prompt: ASK,
    cwd: world.folder(),
    waitMs: 45_000,
  });
  if (answer.result?.isError !== false) throw new Error(`no result: ${JSON.stringify(answer)}`);
  return program.client;
}

/** Returns the processes after none has come or gone for `LOOKS` looks. */
async function settled({ home }) {
  let [before, same] = ["", 0];
  for (;;) {
    const found = processesAround(home);
    const now = found.map(({ pid }) => pid).join();
    same = now === before ? same + 1 : 0;
    if (same === LOOKS) return found;
    before = now;
    await sleep(LOOK_MS);
  }
}

function note(figures, processes) {
  const sum = (some) => some.reduce((mb, { pid }) => mb + (proportionalMb(pid) ?? 0), 0);
  const kindOf = ({ command }) => Object.keys(KINDS).find((kind) => KINDS[kind].some((part) => command.includes(part)));
  figures.note("processes", processes.length);
  figures.note("memory", sum(processes));
  for (const kind of Object.keys(KINDS)) {
    const some = processes.filter((process) => kindOf(process) === kind);
    figures.note(kind, some.length);
    figures.note(`${kind}: memory`, sum(some));
  }
}
