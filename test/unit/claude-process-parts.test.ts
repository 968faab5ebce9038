import { setImmediate as nextTurn } from "node:timers/promises";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { Background } from "../../src/claude/process/background.ts";
import { AliveThrottle, withLastWords, settlesWithin } from "../../src/claude/process/control.ts";
import { failedServersNotice, withServerErrors } from "../../src/claude/process/failed-servers.ts";
import { AsyncQueue, userMessage } from "../../src/claude/process/input.ts";
import type { BackgroundTask } from "../../src/domain/event.ts";

describe("the wait for an answer of Claude Code", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
  afterEach(() => vi.useRealTimers());

  it("the wait ends with the answer, with its failure, or with the time limit", async () => {
    expect(await settlesWithin(60_000, Promise.resolve())).toBe(true);
    await expect(settlesWithin(60_000, Promise.reject(new Error("ended")))).rejects.toThrow("ended");
    expect(await settlesWithin(1, new Promise(() => undefined))).toBe(false);
  });

  it("signs of life are throttled to one per 100 ms; other signals pass", () => {
    const throttle = new AliveThrottle();
    const alive = () => throttle.drops({ type: "alive" });
    expect([alive(), alive(), throttle.drops({ type: "idle" })]).toEqual([false, true, false]);
    vi.advanceTimersByTime(100);
    expect([alive(), alive()]).toEqual([false, true]);
  });
});

it.each([
  ["exit code 1", "first\nlast \n", "exit code 1 (last)"],
  ["exit code 1", " \n", "exit code 1"],
  ["exit code 1", "x".repeat(400), `exit code 1 (${"x".repeat(300)})`],
  [undefined, "words", undefined],
])("the end of a process with %j and %j on stderr is explained by %j", (failure, stderr, text) => {
  expect(withLastWords(failure, stderr)).toBe(text);
});

describe("the input of a process", () => {
  it("items pushed before and during the read arrive, until the end", async () => {
    const queue = new AsyncQueue<number>();
    queue.push(1);
    const read: number[] = [];
    const reading = (async () => {
      for await (const item of queue) read.push(item);
    })();
    await vi.waitFor(() => expect(read).toEqual([1]));
    queue.push(2);
    await vi.waitFor(() => expect(read).toEqual([1, 2]));
    queue.push(3);
    queue.end();
    await reading;
    expect(read).toEqual([1, 2, 3]);
  });

  it("a prompt has its images before its text, and its id must be a UUID", () => {
    const id = "0b0e5a6c-7b1d-4f6e-9c2a-3d4e5f60718a";
    expect(userMessage({ id, text: "t", attachments: [] })).toMatchObject({ uuid: id, message: { content: "t" } });
    const image = { mediaType: "image/png" as const, data: "AA==" };
    expect(userMessage({ id, text: "t", attachments: [image] }).message.content).toMatchObject([
      { type: "image", source: { media_type: "image/png", data: "AA==" } },
      { type: "text", text: "t" },
    ]);
    expect(() => userMessage({ id: "p1", text: "", attachments: [] })).toThrow("a prompt id is a UUID");
  });
});

describe("background work of a process", () => {
  const reports: BackgroundTask[][] = [];
  const ended: string[] = [];
  let found: BackgroundTask[] | Error = [];
  const detached = {
    list: async () => (found instanceof Error ? Promise.reject(found) : Promise.resolve(found)),
    end: async (id: string) => {
      // Real processes take time to end.
      await nextTurn();
      ended.push(id);
      found = [];
    },
  };
  const task = (id: string, description = id) => ({ id, type: "process", description });
  const mask = (text: string) => text.replace("hush", "***");
  const begin = () =>
    new Background(
      () => detached,
      (tasks) => void reports.push(tasks),
      mask,
    );
  beforeEach(() => {
    found = [];
    for (const list of [reports, ended]) list.splice(0);
  });

  it("detached processes are reported with Claude Code's tasks, masked, and only after a change", async () => {
    const background = begin();
    background.reported([task("t", "hush")]);
    found = [task("process-1", "run hush")];
    await background.turnEnded();
    expect(reports).toEqual([[task("t", "***")]]);
    for (const _ of [1, 2]) {
      background.toolUsed();
      await background.turnEnded();
    }
    expect(reports.slice(1)).toEqual([[task("t", "***"), task("process-1", "run ***")]]);
    found = new Error("no /proc");
    background.toolUsed();
    await background.turnEnded();
    expect(reports).toHaveLength(2);
  });

  it("a detached process is ended by its id; its output is not kept", async () => {
    const background = begin();
    found = [task("process-1")];
    background.toolUsed();
    await background.turnEnded();
    await expect(background.control({ do: "task-output", taskId: "process-1" })).rejects.toThrow("is not kept");
    expect(await background.control({ do: "stop-task", taskId: "process-1" })).toEqual({ taskId: "process-1" });
    expect(ended).toEqual(["process-1"]);
    expect(reports).toEqual([[task("process-1")], []]);
  });
});

describe("a warning of MCP servers that have failed", () => {
  const warned = async (servers: Promise<unknown[]>) => {
    const mask = (text: string) => text.replaceAll("swordfish", "[secret]");
    const notice = failedServersNotice(["a", "b"]);
    if (notice.type !== "notice") throw new Error("no notice");
    const query = { mcpServerStatus: async () => servers } as unknown as Parameters<typeof withServerErrors>[1];
    return (await withServerErrors(notice, query, mask)).message;
  };
  const advice =
    "did not start, and Claude works without their tools. Fix their configuration, then start a new session.";

  it("a warning has Claude Code's reasons, masked before they are cut", async () => {
    const error = `${"x".repeat(195)}swordfish`;
    const servers = [
      { name: "a", status: "failed", error },
      { name: "b", status: "needs-auth" },
    ];
    const expected = `mcpServers: a (${"x".repeat(195)}[secr), b (needs-auth) ${advice}`;
    expect(await warned(Promise.resolve(servers))).toBe(expected);
  });

  it("a server named `toString` is warned of by its name", () => {
    const name = "toString";
    expect(failedServersNotice([name])).toMatchObject({ message: `mcpServers: ${name} ${advice}` });
  });

  it("a warning has only the names if Claude Code gives no reason or no answer", async () => {
    expect(await warned(Promise.resolve([{ name: "a", status: "failed" }]))).toBe(`mcpServers: a, b ${advice}`);
    expect(await warned(Promise.reject(new Error("ended")))).toBe(`mcpServers: a, b ${advice}`);
  });
});
