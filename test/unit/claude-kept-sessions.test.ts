import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeEach, describe, expect, it } from "vitest";

import { findSession, findOpenProcess } from "../../src/claude/folder/find.ts";
import { findPrompts, planResume, findTranscript } from "../../src/claude/folder/transcript.ts";
import { startTime } from "../../src/claude/supervise/tree.ts";
import { placementOf } from "../kit/sessions/confined-runtime.ts";

/** Transcripts in `projects` and notes of open sessions in `sessions`, below the configuration folder of Claude Code. */

const root = mkdtempSync(join(tmpdir(), "ccm-kept-"));
const id = "0b0e5a6c-7b1d-4f6e-9c2a-3d4e5f60718a";
let config: string;
beforeEach(() => {
  config = mkdtempSync(join(root, "config-"));
  for (const folder of ["projects/a", "projects/b", "sessions"]) mkdirSync(join(config, folder), { recursive: true });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const ANSWER = { type: "assistant" };

const start = (over: object = {}) => ({
  ...placementOf({ cwd: "/x" }, "local"),
  sessionId: id,
  transcriptId: id,
  processTag: "t",
  epoch: 1,
  first: false,
  hasSpoken: false,
  admitted: Promise.resolve(),
  watchesCost: false,
  hasFreeSlot: async () => Promise.resolve(false),
  onSignal: () => undefined,
  onPartial: () => undefined,
  ...over,
});

const sendAgain = () => start({ sendsAgain: true, resumeAt: "m", rerunOf: ["p"], hasSpoken: true });

function transcript(lines: readonly (object | string)[], project = "b"): string {
  const file = join(config, "projects", project, `${id}.jsonl`);
  writeFileSync(file, lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""));
  return file;
}

describe("a session that Claude Code has kept", () => {
  it("a kept session is found in any project, with its last folder", async () => {
    transcript([{ type: "summary" }, { type: "user", cwd: "/first" }, { type: "assistant", cwd: '/a "b"' }, "garbled"]);
    expect(await findSession(id, config)).toEqual({ cwd: '/a "b"' });
    expect(await findSession(id, join(config, "gone"))).toBeUndefined();
  });

  it("a transcript without a message does not count as a session", async () => {
    transcript([{ type: "summary", cwd: "/x" }]);
    expect(await findSession(id, config)).toBeUndefined();
    transcript([{ type: "user" }], "a");
    expect(await findSession(id, config)).toEqual({ cwd: undefined });
    expect(await findTranscript(id, config)).toBe(join(config, "projects/a", `${id}.jsonl`));
  });

  it("a session is not looked up by an id that is a path", async () => {
    writeFileSync(join(config, "outside.jsonl"), '{"type":"user","cwd":"/x"}\n');
    expect(await findSession("../../outside", config)).toBeUndefined();
  });

  it("a prompt is in a transcript if its id occurs there", async () => {
    const file = transcript([
      { type: "user", uuid: "p1" },
      { type: "attachment", of: "p2" },
    ]);
    expect(await findPrompts(file, ["p1", "p2", "p3"])).toEqual(new Set(["p1", "p2"]));
    expect(await findPrompts(join(config, "gone"), [])).toEqual(new Set());
  });
});

describe("a process of a session", () => {
  const other = "1c1e5a6c-7b1d-4f6e-9c2a-3d4e5f60718a";
  const planned = async (over: object) => (await planResume(start(over), config)).options;
  const listing = [{ type: "queue-operation" }, { type: "mode" }];

  it("a process resumes its transcript, even if the transcript holds only refusals by hooks", async () => {
    transcript([{ type: "user" }]);
    expect(await planned({ hasSpoken: true })).toEqual({ resume: id });
    transcript([...listing, { type: "system" }]);
    expect(await planned({})).toEqual({ resume: id });
  });

  it("a process begins anew if nothing was said, under a new id if Claude Code would refuse the old one", async () => {
    expect(await planned({})).toEqual({ sessionId: id });
    expect(await planned({ origin: { transcriptId: other, isNew: true } })).toEqual({ sessionId: id });
    transcript(listing);
    const { sessionId } = await planned({});
    expect(sessionId).toMatch(/^[\da-f]{8}-/);
    expect(sessionId).not.toBe(id);
  });

  it.each<[string, object, object[] | undefined]>([
    ["gone", { hasSpoken: true }, undefined],
    ["empty", { hasSpoken: true }, []],
    ["without a message", { hasSpoken: true }, listing],
    ["gone after a /clear", { hasSpoken: true, transcriptId: other }, [{ type: "user" }]],
    ["gone, for a fork", { first: true, origin: { transcriptId: other } }, undefined],
    ["gone, for a resumed session", { first: true, origin: { transcriptId: id } }, undefined],
    [
      "gone, though the transcript of its origin exists",
      { hasSpoken: true, origin: { transcriptId: id }, transcriptId: other },
      [{ type: "user" }],
    ],
  ])("a process is not started if its transcript is %s", async (_, over, lines) => {
    if (lines) transcript(lines);
    await expect(planned(over)).rejects.toMatchObject({
      subtype: "transcript_missing",
      message: expect.stringContaining(config),
    });
  });
});

describe("a process that sends a refused request again", () => {
  const refused = { type: "assistant", isSidechain: false, isApiErrorMessage: true, error: "rate_limit" };
  const planned = async () => planResume(sendAgain(), config);

  it.each([
    ["at the first request", [{ type: "user" }, refused, { type: "last-prompt" }]],
    ["again", [{ type: "user" }, refused, { type: "queue-operation" }, refused, { type: "cost-state" }]],
    [
      "after tool calls, with lines of Claude Code and of a subagent behind it",
      [
        { type: "user" },
        { type: "assistant" },
        { type: "user" },
        refused,
        { type: "system" },
        { ...ANSWER, isSidechain: true },
      ],
    ],
  ])("a request that was refused %s is sent again, by the transcript alone", async (_, lines) => {
    transcript(lines);
    expect(await planned()).toEqual({ resumed: true, missing: [], runsAgain: false, options: { resume: id } });
  });

  it.each<[string, (object | string)[]]>([
    ["was answered", [refused, ANSWER]],
    ["is followed by a prompt", [refused, { type: "user" }]],
    ["is followed by half a line", [refused, '{"type":"assistant","message":{']],
    ["failed for another reason", [{ type: "user" }, { ...refused, error: "server_error" }]],
    ["was never refused", [{ type: "user" }]],
    ["has no transcript", []],
  ])("a request that %s is not sent again, and the turn is lost", async (_, lines) => {
    if (lines.length > 0) transcript(lines);
    await expect(planned()).rejects.toMatchObject({
      subtype: "lost",
      message: expect.stringContaining("send a prompt"),
    });
  });
});

describe("the process in which a session is open", () => {
  const note = (name: string, about: object | string) =>
    writeFileSync(join(config, "sessions", name), typeof about === "string" ? about : JSON.stringify(about));
  const own = { pid: process.pid, sessionId: id };

  it("a session is open in a running process, even if its note lacks the entrypoint", async () => {
    note("a.json", "{");
    note("b.json", { ...own, pid: "one" });
    note("c.json", { ...own, sessionId: "another" });
    note("d.txt", own);
    expect(await findOpenProcess(id, config)).toBeUndefined();
    note("e.json", own);
    expect(await findOpenProcess(id, config)).toEqual({ pid: process.pid, how: "unknown" });
    note("e.json", { ...own, procStart: await startTime(process.pid), entrypoint: "cli" });
    const open = await findOpenProcess(id, config);
    expect(open).toEqual({ pid: process.pid, how: "cli" });
  });

  it("a session is not open in a process that has ended, nor in a later process with the same pid", async () => {
    note("a.json", { ...own, pid: 4_194_304 });
    if (process.platform === "linux") note("b.json", { ...own, procStart: "1" });
    expect(await findOpenProcess(id, config)).toBeUndefined();
    expect(await findOpenProcess(id, join(config, "gone"))).toBeUndefined();
  });
});
