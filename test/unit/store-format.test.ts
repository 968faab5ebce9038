import { readFile, readdir, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { SessionOptions } from "../../src/domain/options.ts";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { initialState, SessionState } from "../../src/domain/session.ts";
import { createFormat, NewerFormatError, STATE, type Version, VERSIONS } from "../../src/store/format.ts";
import { StoreFile } from "../kit/store/files.ts";
import {
  expectPresentShape,
  insert,
  readRows,
  ROWS_FOLDER,
  shapes,
  type StoredRow,
  writtenRows,
} from "../kit/store/stored-rows.ts";
import { ManualClock } from "../kit/step/clock.ts";
import { collectErrors, TestNode } from "../kit/step/two-nodes.ts";

/** Present format version. `UPDATE_ROWS=1` writes missing files of `PRESENT` and overwrites none. */
const PRESENT = VERSIONS.length;
const rowsFile = `${ROWS_FOLDER}/${String(PRESENT)}.jsonl`;
const shapeFile = `${ROWS_FOLDER}/${String(PRESENT)}.shape.json`;
if (process.env["UPDATE_ROWS"] === "1") {
  const files = new Set(await readdir(ROWS_FOLDER));
  if (!files.has(`${String(PRESENT)}.jsonl`)) {
    await writeFile(rowsFile, (await writtenRows()).map((row) => `${JSON.stringify(row)}\n`).join(""));
  }
  if (!files.has(`${String(PRESENT)}.shape.json`)) {
    await writeFile(shapeFile, `${JSON.stringify(shapes(), undefined, 2)}\n`);
  }
}

let store: StoreFile;
beforeEach(async () => (store = await StoreFile.make()));
afterEach(async () => store.close());

const versions = Array.from({ length: PRESENT }, (_, index) => index + 1);
describe.each(versions)("sessions stored in format version %i", (version) => {
  let rows: StoredRow[];
  let node: TestNode;
  beforeEach(async () => {
    rows = await readRows(version);
    await insert(store, rows);
    node = new TestNode(store.connect("reader"), new ManualClock());
  });
  afterEach(async () => node.engine.drain());

  it("stored sessions are read completely and in the present shape", async () =>
    expectPresentShape(node.backend, rows));

  /** Waits for a call that satisfies `wasAsked`, then ends the turn. */
  const finished = async (id: string, wasAsked: (call: string) => boolean): Promise<void> => {
    const { moments, processes } = node.runtime;
    await moments.until(() => processes.some(({ sessionId }) => sessionId === id));
    const process = node.runtime.lastProcess(id);
    await process.moments.until(() => process.calls.some(wasAsked));
    process.finish();
  };

  it("the engine continues stored sessions, and refuses prompts to closed ones", async () => {
    const goOn = async (id: string): Promise<unknown> => {
      const { state } = await node.engine.get("local", id);
      const turns = (await node.log(id)).filter(({ type }) => type === "turn.ended").length;
      // A turn at a limit would wait for the reset.
      if (state.waiting && state.turn) await node.engine.interrupt("local", id, "caller");
      const prompted = node.engine.prompt("local", id, { text: "go on", whenBusy: "queue" });
      if (state.closed) return (await collectErrors([prompted]))[0];
      await prompted;
      // A prompt unknown to Claude Code when the server died runs first.
      if (state.turn?.rerun) {
        // Claude Code continues a turn with `rerun` without a push of the prompt.
        node.runtime.lastProcess(id).promptId = state.turn.awaiting[0] ?? "";
        node.runtime.lastProcess(id).finish();
      } else if (state.turn?.settling) {
        // The work is over: only the approval of its commands may be missing.
        for (const { requestId } of state.requests)
          await node.engine.answer(LOCAL_CALLER, id, { requestId, decision: "deny", by: "caller" });
      } else if (state.turn && !state.waiting)
        await finished(id, (call) => call.startsWith("push") || call === "send again");
      await finished(id, (call) => call === "push go on");
      return node.waitForEvent(id, "turn.ended", turns + (state.turn ? 2 : 1));
    };
    const closed = rows.map(({ status }) => status === "closed" || status === "cancelled");
    expect(await Promise.all(rows.map(async ({ id }) => goOn(id)))).toMatchObject(
      closed.map((is) => (is ? { code: "CANCELLED" } : { data: { outcome: "done" } })),
    );
    const page = await node.engine.list({ principal: "local", limit: 1000 });
    expect(page.map(({ id }) => id).toSorted()).toEqual(rows.map(({ id }) => id).toSorted());
    expect(node.complaints.filter((words) => !words.startsWith("took over"))).toEqual([]);
  });
});

describe("the shape of stored data", () => {
  it("the shape of stored data changes only with a new version (VERSIONS in src/store/format.ts, then UPDATE_ROWS=1)", async () => {
    expect(shapes()).toEqual(JSON.parse(await readFile(shapeFile, "utf8")));
  });

  it("the rows of the present version have every field of a session's state", async () => {
    const known = new Set((await readRows(PRESENT)).flatMap(({ state }) => Object.keys(state)));
    expect(Object.keys(SessionState.shape).filter((key) => !known.has(key))).toEqual([]);
  });

  it("the folder is the only required option of a session, so an added option needs no new version", () => {
    expect(z.toJSONSchema(SessionOptions, { unrepresentable: "any" }).required).toEqual(["cwd"]);
  });
});

describe("a format", () => {
  const state = { ...initialState(0), lastOutcome: "lost" as const };
  const labelled: Version = { state: (old) => ({ trialLabels: [], ...old }) };
  const counted: Version = {
    state: ({ trialLabels, ...old }) => ({ ...old, count: z.array(z.unknown()).parse(trialLabels).length }),
  };
  const upTo = (...later: Version[]) => createFormat("state", [...VERSIONS, ...later]);

  it("a format reads each older version through all later migrations, and refuses data without a version", () => {
    const text = JSON.stringify({ v: PRESENT, ...state, trialLabels: ["a", "b"] });
    expect(upTo(labelled, counted).read(text)).toEqual({ ...state, count: 2 });
    expect(upTo(labelled, counted).read(STATE.write(state))).toEqual({ ...state, count: 0 });
    expect(createFormat("event", [...VERSIONS, labelled]).read(`{"v":1,"type":"x"}`)).toEqual({ type: "x" });
    expect(() => createFormat("event").read(`{"type":"x"}`)).toThrow("a version of event is not a number");
  });

  it("fields of a newer server survive when an older server reads the state and writes it back", () => {
    const newer = upTo(labelled);
    const kept = newer.read(JSON.stringify({ v: PRESENT, ...state, trialLabels: ["a"] }));
    // Read, and written back under the older version, by an older server.
    const back = STATE.read(newer.write(kept));
    expect(newer.read(STATE.write(back))).toEqual({ ...state, trialLabels: ["a"] });
  });

  it("data that only newer servers can read is refused with the advice to update", () => {
    const text = upTo(labelled, { breaks: true }, {}).write(state);
    expect(JSON.parse(text)).toMatchObject({ v: PRESENT + 3, needs: PRESENT + 2 });
    expect(() => STATE.read(text)).toThrow(NewerFormatError);
    expect(() => STATE.read(text)).toThrow(
      `a session's state needs format version ${String(PRESENT + 2)}, and this claude-agents-mcp reads up to version ${String(PRESENT)}. Update claude-agents-mcp.`,
    );
    expect(upTo(labelled, { breaks: true }).read(text)).toEqual(state);
    expect(() => STATE.read(`{"v":"1"}`)).toThrow("a version of state is not a number");
  });

  it.each(["state", "spec"] as const)("a row with a newer %s is read as unreadable, with the reason", async (part) => {
    const [row] = await readRows(PRESENT);
    await insert(store, [{ ...row!, [part]: { ...row![part], v: PRESENT + 1, needs: PRESENT + 1 } }]);
    const node = store.connect("reader");
    const why = expect.stringMatching(/needs format version .* Update claude-agents-mcp$/);
    const unreadable = { isNewer: true, why };
    expect(await node.rows.get(row!.id)).toMatchObject({ unreadable });
    expect(await node.rows.list({ principal: "local", limit: 9 })).toMatchObject([{ unreadable }]);
    expect(await node.log.read(row!.id, 1, 9)).toHaveLength(row!.events.length);
  });

  it("an event in a newer format is read as lost, with the reason", async () => {
    const row = (await readRows(PRESENT)).find(({ events }) => events.length > 1)!;
    const [first, second] = row.events;
    const newer = { ...second!, event: { ...second!.event, v: PRESENT + 1, needs: PRESENT + 1 } };
    await insert(store, [{ ...row, events: [first!, newer] }]);
    const node = store.connect("reader");
    expect(await node.log.read(row.id, 1, 1)).toHaveLength(1);
    const message = expect.stringContaining("a session's event needs format version");
    expect(await node.log.read(row.id, 2, 9)).toMatchObject([{ id: 2, data: { kind: "data_loss", message } }]);
  });
});
