import { execFile } from "node:child_process";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import { signIn, type ConsoleClient } from "../kit/clients/console-client.ts";
import type { SessionList } from "../../src/console/wire.ts";
import {
  addSession,
  id,
  listSessions,
  promptEvent,
  runSessions,
  assistantEvent,
  seed,
} from "../kit/clients/sessions-command.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { changeStore, DAMAGES } from "../kit/store/damage.ts";
import { useWorld } from "../kit/world.ts";

/** Sessions with unreadable rows, in a store that servers, the console, the commands and `doctor` use. */

const world = useWorld({ agent: "stand-in" });
const SOUND = id(0xa11);
/** Session with a damaged last event, and no other damage. */
const LOSSY = id(0xb0b);
const ids = DAMAGES.map((_, n) => id(n));
const OF_STATE = ids[0]!;
const OF_NEWER = ids.at(-1)!;

let args: string[];
let file: string;
let server: Server;
let page: ConsoleClient;
beforeAll(async () => {
  file = join(world.folder(), "store.db");
  args = await seed(file, async (node) => {
    const events = [promptEvent("Do it."), assistantEvent("Done.")];
    for (const each of [SOUND, LOSSY, ...ids]) {
      const ended = each === LOSSY && { lastOutcome: "done" as const, lastTurnEventId: 2 };
      await addSession(node, each, { events, state: { ...ended } });
    }
  });
  const lossy = `UPDATE events SET event = '{' WHERE session_id = '${LOSSY}' AND id = 2`;
  // Every server that looks for a free slot reads the sessions recorded as at work.
  const atWork = `UPDATE sessions SET status = 'running', at_work = 1 WHERE id = '${OF_STATE}'`;
  await changeStore(file, lossy, atWork, ...DAMAGES.map(({ sql }, n) => sql(ids[n]!)));
  server = await world.server({ args });
  const http = await world.http({ args, token: "ccm_of-the-operator-of-these-tests-0123456789" });
  page = await signIn(http, "ccm_of-the-operator-of-these-tests-0123456789");
});

describe("a server whose store holds unreadable sessions", () => {
  it("a server with unreadable sessions starts new sessions", async () => {
    const say = (text: string) => `${text}? ${scriptTag([{ text }])}`;
    const begun = await server.call("claude_code", { prompt: say("new"), cwd: world.folder(), waitMs: 40_000 });
    expect(begun).toMatchObject({ status: "idle", result: { result: "new", isError: false } });
  });

  it("a list shows unreadable sessions as failed", async () => {
    const { sessions } = await server.call("claude_code_session", { action: "list", limit: 50 });
    const rows = z.array(z.looseObject({ sessionId: z.string(), status: z.string() })).parse(sessions);
    const failed = rows.filter(({ errorSubtype }) => errorSubtype === "unreadable");
    expect(failed.map(({ sessionId }) => sessionId).toSorted()).toEqual(ids.toSorted());
    expect(new Set(failed.map(({ status }) => status))).toEqual(new Set(["error"]));
    expect(rows.map(({ sessionId }) => sessionId)).toContain(SOUND);
  });

  it("a poll of an unreadable session, alone or among several, has the reason in its result", async () => {
    const unreadable = { isError: true, errorSubtype: "unreadable" };
    const one = await server.call("claude_code_check", {
      action: "poll",
      sessionId: OF_STATE,
      cursor: 1,
      waitMs: 40_000,
    });
    const why = "The session cannot be read (state: not valid JSON). Delete it (claude_code_session, action: delete)";
    expect(one).toMatchObject({ status: "error", result: { ...unreadable, result: expect.stringContaining(why) } });
    const sessions = [SOUND, OF_STATE, OF_NEWER].map((sessionId) => ({ sessionId, cursor: 1 }));
    const several = await server.call("claude_code_check", { action: "poll", sessions, waitMs: 40_000 });
    const newer = expect.stringContaining("Update claude-agents-mcp");
    expect(several.sessions).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ sessionId: SOUND, status: "idle" }),
        expect.objectContaining({ sessionId: OF_STATE, status: "error", result: expect.objectContaining(unreadable) }),
        expect.objectContaining({
          sessionId: OF_NEWER,
          status: "error",
          result: expect.objectContaining({ ...unreadable, result: newer }),
        }),
      ]),
    );
  });

  it("an unreadable event is reported as lost; if it ended a turn, the result says so", async () => {
    const told = await server.call("claude_code_check", { action: "poll", sessionId: LOSSY, cursor: 1, waitMs: 0 });
    const message = "Event 2 cannot be read (content: not valid JSON).";
    expect(told).toMatchObject({
      events: [{ id: 2, type: "progress", data: { notice: "data_loss", message } }],
      result: {
        isError: true,
        errorSubtype: "unreadable",
        result: `The end of the last turn cannot be read. ${message}`,
      },
    });
  });

  it("a reply to an unreadable session is refused with the reason", async () => {
    const told = await server.refusal("claude_code_reply", { sessionId: OF_STATE, prompt: "go on" });
    expect(told).toMatchObject({ code: "INTERNAL", text: expect.stringContaining("cannot be read (state: not valid") });
  });

  it("the console shows unreadable sessions, with requests and usage of the others", async () => {
    const { sessions } = await page.get<SessionList>("sessions?limit=50");
    const unreadable = sessions.filter((each) => each.unreadable !== undefined);
    expect(unreadable.map((each) => each.id).toSorted()).toEqual(ids.toSorted());
    expect(await page.get(`sessions/${OF_STATE}`)).toMatchObject({ status: "error", lastEventId: 2 });
    expect(await page.get(`sessions/${OF_STATE}/events`)).toMatchObject({ events: [{ id: 1 }, { id: 2 }] });
    expect(await page.get("requests")).toMatchObject({ open: [] });
    expect(await page.get("usage")).toMatchObject({ totals: { turns: 1 } });
  });

  it("an unreadable session is deleted, and the others are kept", async () => {
    await server.call("claude_code_session", { action: "delete", sessionId: ids[1]! });
    const { sessions } = await listSessions("--limit", "50", ...args);
    expect(sessions.map(({ sessionId }) => sessionId)).not.toContain(ids[1]);
  });
});

describe("the commands, on a store with unreadable sessions", () => {
  it("`sessions list`, `show` and `stats` report unreadable sessions", async () => {
    const { sessions } = await listSessions("--limit", "50", ...args);
    expect(sessions.find(({ sessionId }) => sessionId === OF_STATE)).toMatchObject({
      status: "error",
      errorSubtype: "unreadable",
      unreadable: "state: not valid JSON",
    });
    expect((await runSessions(["list", "--limit", "50", ...args])).stdout).toContain("(unreadable) Do it.");
    expect((await runSessions(["show", OF_STATE, ...args])).stdout).toContain(
      "error: the stored data cannot be read: state: not",
    );
    const { stdout, status } = await runSessions(["stats", "--json", ...args]);
    expect([status, JSON.parse(stdout)]).toMatchObject([0, { sessions: { byStatus: { error: DAMAGES.length - 1 } } }]);
  });

  it("`sessions export` writes all that is stored of an unreadable session", async () => {
    const { stdout } = await runSessions(["export", OF_STATE, ...args]);
    const [row, ...events] = stdout
      .trim()
      .split("\n")
      .map((line) => z.looseObject({}).parse(JSON.parse(line)));
    expect(row).toMatchObject({
      unreadable: "state: not valid JSON",
      stored: { id: OF_STATE, state: '{"v":1,"turn":' },
    });
    expect(events).toMatchObject([{ type: "prompt.queued" }, { type: "message" }]);
    const lossy = (await runSessions(["export", LOSSY, ...args])).stdout.trim().split("\n");
    expect(JSON.parse(lossy[1]!)).toMatchObject({
      type: "notice",
      data: { details: { type: "message", stored: "{" } },
    });
    expect((await runSessions(["export", OF_STATE, "--format", "markdown", ...args])).stdout).toContain(
      "Unreadable: `state: not valid JSON`",
    );
  });

  it("`doctor` names unreadable sessions, and what to do", async () => {
    const findings = await doctor();
    const [found] = findings.filter((each) => each.level === "error");
    const { fix, text } = found!;
    // `ids[1]` is deleted above, and `OF_NEWER` needs a newer server.
    expect(text).toContain(`${String(DAMAGES.length - 2)} sessions cannot be read: `);
    expect(text).toContain(`${OF_STATE} (state: not valid JSON)`);
    expect(fix).toContain(`sessions delete `);
    expect(findings.filter((each) => each.level === "warning").map((each) => each.text)).toEqual([
      `1 session can only be read by a newer claude-agents-mcp: ${OF_NEWER}.`,
      `1 session with events that cannot be read: ${LOSSY}. The log reports them as lost.`,
    ]);
  });

  it("`sessions delete` deletes unreadable sessions", async () => {
    expect(await runSessions(["delete", OF_STATE, ids[2]!, "--yes", ...args])).toMatchObject({
      status: 0,
      stdout: "2 sessions deleted.\n",
    });
  });
});

const Findings = z.array(
  z.looseObject({ id: z.string(), level: z.string(), text: z.string(), fix: z.string().optional() }),
);

async function doctor() {
  const env = { PATH: process.env["PATH"] ?? "", HOME: world.folder() };
  const stdout = await new Promise<string>((resolve) => {
    execFile(process.execPath, ["dist/cli/main.js", "doctor", "--json", ...args], { env }, (_, out) => resolve(out));
  });
  const { findings } = z.looseObject({ findings: Findings }).parse(JSON.parse(stdout));
  return findings.filter((each) => each.id === "store");
}
