import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import pg from "pg";
import { Cluster } from "../scripts/postgres-cluster.mjs";
import { percentile } from "./figures.mjs";
import { fill, newFile, said, storesOf } from "./internals.mjs";
import { startServer } from "./server.mjs";
import { prompt } from "./world.mjs";

const ASK = prompt({ text: "hi" });
/** Operations of each kind in a round. */
const TIMES = 100;
/** Turns of each kind in a round. */
const TURNS = 4;
/** Pause before an event that wakes a reader, ms: longer than the interval of notifications. */
const PAUSE_MS = 40;
/** Events on a page of a poll. */
const PAGE = 20;

const RAW = "a bare INSERT ... RETURNING on one connection";
const SQLITE = "SQLite: ";
const POSTGRES = "PostgreSQL: ";

export const postgres = {
  name: "postgres",
  long: true,
  about: "a store on PostgreSQL, installed from Debian's packages: its operations, and turns on it",
  rows: [
    { row: "append of an event, synced", of: `${POSTGRES}append`, base: `${SQLITE}append`, unit: "ms" },
    {
      row: "append of an event, synced, against the database",
      of: `${POSTGRES}append`,
      base: RAW,
      unit: "ms",
      atMost: 2,
    },
    { row: "poll of 20 events", of: `${POSTGRES}poll`, base: `${SQLITE}poll`, unit: "ms" },
    { row: "wake of a reader at another node, median", of: `${POSTGRES}wake`, base: `${SQLITE}wake`, unit: "ms" },
    {
      row: "wake of a reader at another node, 99th percentile",
      of: `${POSTGRES}wake p99`,
      base: `${SQLITE}wake p99`,
      unit: "ms",
    },
    { row: "first turn, without a spare", of: `${POSTGRES}first`, base: `${SQLITE}first`, unit: "ms" },
    { row: "later turn", of: `${POSTGRES}later`, base: `${SQLITE}later`, unit: "ms" },
  ],
  async run({ figures, progress, rounds, world }) {
    const cluster = await Cluster.start();
    try {
      await measure({ cluster, figures, progress, rounds, world });
    } finally {
      await cluster.remove();
    }
  },
};

/** Returns the location of a store in a schema of its own. */
function databaseOf(world, { password, port, user }) {
  const passwordFile = join(world.home, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  const schema = `s_${randomUUID().slice(0, 8)}`;
  return {
    kind: "postgres",
    url: `postgres://${user}@127.0.0.1:${String(port)}/postgres?search_path=${schema}`,
    passwordFile,
  };
}

async function measure({ cluster, figures, progress, rounds, world }) {
  const places = [
    { name: SQLITE, location: { kind: "sqlite", file: newFile(world) } },
    { name: POSTGRES, location: databaseOf(world, cluster) },
  ];
  const stores = await storesOf(world);
  const sides = [];
  for (const { location, name } of places) sides.push(await sideOf({ location, name, stores, world }));
  const bare = await bareInsert(cluster);
  for (let round = 1; round <= rounds; round++) {
    progress(`round ${String(round)} of ${String(rounds)}`);
    for (let time = 0; time < TIMES; time++) {
      await figures.timed(RAW, bare.insert);
      for (const side of sides) await figures.timed(`${side.name}append`, side.append);
      for (const side of sides) await figures.timed(`${side.name}poll`, side.poll);
    }
    for (const side of sides) await noteWakes(figures, side);
    for (let turn = 0; turn < TURNS; turn++) {
      for (const side of sides) await figures.timed(`${side.name}first`, side.firstTurn);
      for (const side of sides) await figures.timed(`${side.name}later`, side.laterTurn);
    }
  }
  for (const side of sides) await side.close();
  await bare.close();
}

/** Inserts an event of the same size, synced, as the database does it alone. */
async function bareInsert({ password, port, user }) {
  const client = new pg.Client({ host: "127.0.0.1", port, user, password, database: "postgres" });
  await client.connect();
  await client.query("CREATE TABLE bare(n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, event text NOT NULL)");
  const text = JSON.stringify(said(1));
  const insert = { name: "bare", text: "INSERT INTO bare(event) VALUES($1) RETURNING n", values: [text] };
  return { insert: () => client.query(insert), close: () => client.end() };
}

/** Opens a store at two nodes, and a server on it. */
async function sideOf({ location, name, stores, world }) {
  const [owner, reader] = [await stores.connect(location), await stores.connect(location)];
  const [id] = await fill(owner, { cwd: world.home, events: 2_000, ...stores, progress: () => undefined, sessions: 1 });
  const lease = await owner.leases.claim(id);
  let { state } = await owner.rows.get(id);
  const append = async () => {
    state = { ...state, lastEventId: state.lastEventId + 1 };
    await owner.log.append(lease, { events: [said(state.lastEventId)], at: Date.now(), state, acted: true });
  };
  const flags =
    location.kind === "sqlite"
      ? ["--store", location.file]
      : ["--store", location.url, "--store-password-file", location.passwordFile];
  const server = await startServer(world, flags);
  const sessionId = await server.begin(ASK);
  await server.end(sessionId);
  return {
    name,
    append,
    poll: () => owner.log.read(id, state.lastEventId - PAGE, PAGE),
    tail: (signal) => reader.log.tail(id, state.lastEventId + 1, signal),
    firstTurn: async () => {
      const begun = await server.begin(ASK);
      await server.end(begun);
      await server.call("claude_code_session", { action: "cancel", sessionId: begun });
    },
    laterTurn: () => server.turn(sessionId, ASK),
    close: async () => {
      await server.close();
      for (const store of [owner, reader]) await store.close();
    },
  };
}

/** Measures from the call of `append` until another node has the event. */
async function noteWakes(figures, { append, name, tail }) {
  const end = new AbortController();
  const events = tail(end.signal)[Symbol.asyncIterator]();
  const times = [];
  for (let time = 0; time < TIMES; time++) {
    const next = events.next();
    await sleep(PAUSE_MS);
    const began = performance.now();
    await append();
    await next;
    times.push(performance.now() - began);
  }
  end.abort();
  figures.note(`${name}wake`, percentile(times, 50));
  figures.note(`${name}wake p99`, percentile(times, 99));
}

const FULL = { events: 1_000_000, sessions: 10_000 };
const EMPTY = "the same in an empty store";

export const postgresFull = {
  name: "postgres-full",
  long: true,
  about: "appends and polls in a PostgreSQL store with a million events and 10,000 sessions",
  rows: [
    { row: "append, a million events stored", of: "append", base: `append: ${EMPTY}`, unit: "ms", atMost: 1.2 },
    { row: "poll, a million events stored", of: "poll", base: `poll: ${EMPTY}`, unit: "ms", atMost: 1.2 },
  ],
  async run({ figures, progress, rounds, world }) {
    const cluster = await Cluster.start();
    try {
      const stores = await storesOf(world);
      const sides = [];
      for (const [suffix, filling] of [
        ["", FULL],
        [`: ${EMPTY}`, undefined],
      ]) {
        const location = databaseOf(world, cluster);
        const store = await stores.connect(location);
        if (filling) await fill(store, { cwd: world.home, ...stores, progress, ...filling });
        await store.close();
        sides.push(await sideOf({ location, name: suffix, stores, world }));
      }
      for (let round = 1; round <= rounds; round++) {
        progress(`round ${String(round)} of ${String(rounds)}`);
        for (let time = 0; time < TIMES; time++) {
          // In turns, because the first work after an append runs beside its notification.
          const inTurns = time % 2 === 0 ? sides : sides.toReversed();
          for (const side of inTurns) await figures.timed(`append${side.name}`, side.append);
          for (const side of inTurns) await figures.timed(`poll${side.name}`, side.poll);
        }
      }
      for (const side of sides) await side.close();
    } finally {
      await cluster.remove();
    }
  },
};
