import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { initialState } from "../../src/domain/session.ts";
import {
  addSession,
  HOUR,
  id,
  listSessions,
  NOW,
  promptEvent,
  expectedRefusal,
  runSessions,
  assistantEvent,
  seed,
  turn,
} from "../kit/clients/sessions-command.ts";
import { onTerminal, WITHOUT_TERMINAL } from "../kit/clients/terminal.ts";

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-sessions-")));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("many sessions, without a server", () => {
  let store: string[];
  beforeAll(async () => {
    store = await seed(join(root, "many.db"), async (node) => {
      for (let n = 0; n < 60; n += 1) {
        const cwd = n % 2 === 0 ? "/even" : "/odd";
        const events = [promptEvent(`Do number ${String(n)}.`)];
        await addSession(node, id(n), {
          at: NOW - n * HOUR,
          cwd,
          events,
          ...(n === 7 && { state: { lastOutcome: "lost" } }),
        });
      }
      await addSession(node, id(0xdead), { at: NOW - 9 * HOUR, state: { turn } });
      await addSession(node, id(0xa11), { principal: "another user" });
    });
  });
  const ids = async (...args: string[]) =>
    (await listSessions(...args, ...store)).sessions.map(({ sessionId }) => sessionId);

  it("`sessions list` shows the newest sessions, and says that there are more", async () => {
    const { more, sessions } = await listSessions(...store);
    expect([more, sessions.length, sessions[0]?.sessionId]).toEqual([true, 50, id(0)]);
    const { stdout } = await runSessions(["list", "--limit", "2", ...store]);
    expect(stdout).toMatch(
      /^ID .*\n00000000  idle .*  \/even +Do number 0\.\n00000001 .*\n\nShowing the newest 2; there /,
    );
    expect((await runSessions(["list", "--limit", "61", ...store])).stdout).toMatch(/\n0000003b .* 2d .*\n$/);
  });

  it("`sessions list` finds sessions by status, folder, time and text", async () => {
    expect(await ids("--status", "error")).toEqual([id(7)]);
    expect(await ids("--status", "error", "--status", "abandoned")).toEqual([id(7), id(0xdead)]);
    // No server runs, so a running session counts as `abandoned`, also in the filter.
    expect(await ids("--status", "running")).toEqual([]);
    const { sessions } = await listSessions("--status", "abandoned", ...store);
    expect(sessions).toEqual([expect.objectContaining({ sessionId: id(0xdead), status: "abandoned", owned: false })]);
    expect(sessions[0]).not.toHaveProperty("abandoned");
    expect(await ids("--cwd", "/odd/", "--since", "4h")).toEqual([id(1), id(3)]);
    expect(await ids("--since", new Date(NOW - 2 * HOUR).toISOString())).toEqual([id(0), id(1), id(2)]);
    expect(await ids("--text", "NUMBER 42")).toEqual([id(42)]);
    // Without a verb, `sessions` lists.
    expect((await runSessions(["--text", "nobody", ...store])).stdout).toBe("No session matches.\n");
  });

  it("a prefix of an id is accepted if it is the prefix of only one id", async () => {
    expect((await runSessions(["show", "0000dea", ...store])).stdout).toContain(
      `Session     ${id(0xdead)}\nStatus      abandoned: `,
    );
    expect(await runSessions(["show", "0000001", ...store])).toEqual(
      expectedRefusal(
        1,
        /^claude-agents-mcp: "0000001" is ambiguous: (\S+, ){3}\S+ and others\. Give a longer prefix of the id\.\n$/,
      ),
    );
    for (const unknown of ["f", id(0xa11), ""]) {
      expect(await runSessions(["show", unknown, ...store])).toMatchObject({
        status: unknown === "" ? 2 : 1,
        stdout: "",
      });
    }
  });

  it("`sessions delete` deletes none of the named sessions if one of them must stay", async () => {
    expect(await runSessions(["delete", id(5), "0000dead", "--yes", ...store])).toEqual(
      expectedRefusal(
        1,
        `Session ${id(0xdead)} was left running by a server that is gone\\. .* Nothing was deleted\\.\n$`,
      ),
    );
    expect(await runSessions(["delete", id(5), "ffff", "--yes", ...store])).toEqual(
      expectedRefusal(1, "no session ffff"),
    );
    expect(await ids("--text", "number 5.")).toEqual([id(5)]);
  });

  it("`sessions delete` says what it would delete, and needs --yes if it cannot ask", async () => {
    expect(await runSessions(["delete", id(5), id(6), id(5), ...store])).toEqual(
      expectedRefusal(
        2,
        `^claude-agents-mcp: 2 sessions would be deleted: ${id(5)} \\(idle\\), ${id(6)} .* --yes is required\\.\n$`,
      ),
    );
    expect(await runSessions(["delete", "--older-than", "3h", ...store])).toEqual(
      expectedRefusal(
        2,
        /^1 old session kept: still active\.\nclaude-agents-mcp: 57 sessions would be .* and 47 more\. .*--yes/,
      ),
    );
    expect(await ids("--text", "number 5.")).toEqual([id(5)]);
  });

  it("`sessions delete` asks on a terminal, and deletes only after a yes", async ({ skip }) => {
    skip(WITHOUT_TERMINAL !== undefined, WITHOUT_TERMINAL);
    for (const [answer, left] of [
      ["n\r", [id(59)]],
      ["\u0003", [id(59)]],
      ["yes\r", []],
    ] as const) {
      const command = `${process.execPath} dist/cli/main.js sessions delete ${id(59)} ${store.join(" ")}`;
      const { screen, status } = await onTerminal(command, answer);
      expect(screen).toContain("1 session would be deleted");
      expect([status, await ids("--text", "number 59")]).toEqual([0, left]);
    }
  });

  it("`sessions delete` deletes older sessions, and none that was left running", async () => {
    const { status, stdout } = await runSessions(["delete", "--older-than", "3h", "--yes", ...store]);
    expect({ status, stdout }).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^56 sessions deleted\.\n$/) as string,
    });
    expect(await ids()).toEqual([id(0), id(1), id(2), id(0xdead)]);
  });
});

describe("a long log", () => {
  let store: string[];
  // 56 MB, more than the heap.
  const [events, each] = [14_000, 4_000];
  beforeAll(async () => {
    store = await seed(join(root, "long.db"), async (node) => {
      await addSession(node, id(1));
      const lease = await node.leases.claim(id(1));
      if (!lease) throw new Error("not claimed");
      for (let last = 500; last <= events; last += 500) {
        const page = Array.from({ length: 500 }, (_, n) => assistantEvent(String(last - 500 + n).padEnd(each, "x")));
        await node.log.append(lease, { events: page, at: NOW, state: { ...initialState(NOW), lastEventId: last } });
      }
      await node.leases.release(lease);
    });
  });

  it.each(["jsonl", "markdown"])("a long log is exported as %s without being held in memory", async (format) => {
    const env = { NODE_OPTIONS: "--max-old-space-size=48" };
    const { status, stderr, stdout } = await runSessions(["export", id(1), "--format", format, ...store], env);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout.length).toBeGreaterThan(events * each);
    expect(stdout.match(/\b\d{1,5}x/g)?.map((found) => Number.parseInt(found, 10))).toEqual(
      Array.from({ length: events }, (_, n) => n),
    );
  });

  it("an export ends without an error if its reader stops in the middle", async () => {
    const child = spawn(process.execPath, ["dist/cli/main.js", "sessions", "export", id(1), ...store], {
      stdio: "pipe",
    });
    const [stderr] = await Promise.all([
      text(child.stderr),
      new Promise((resolve) => child.stdout.once("data", resolve)).then(() => child.stdout.destroy()),
      new Promise((resolve) => child.once("close", resolve)),
    ]);
    expect([child.exitCode, stderr]).toEqual([0, ""]);
  });
});

describe("a missing store, and a file that is not a store", () => {
  it("without a store there are no sessions, and no store is created", async () => {
    const file = join(root, "none.db");
    expect(await runSessions(["list", "--store", file])).toEqual({
      status: 0,
      stdout: `No sessions yet: there is no ${file}.\n`,
      stderr: "",
    });
    expect(await listSessions("--store", file)).toEqual({ sessions: [], more: false });
    for (const args of [
      ["show", "x"],
      ["export", "x"],
      ["delete", "x"],
      ["delete", "--older-than", "1d"],
    ]) {
      const line = `claude-agents-mcp: No sessions yet: there is no store at ${file}.\n`;
      expect(await runSessions([...args, "--store", file])).toEqual({ status: 1, stdout: "", stderr: line });
    }
    expect(existsSync(file)).toBe(false);
  });

  it("the store is looked for where serve keeps it: the flag, the variable, the file, the state folder", async () => {
    const config = join(root, "config.json");
    writeFileSync(config, JSON.stringify({ store: "of-file.db" }));
    const CLAUDE_CODE_MCP_STORE = join(root, "of-variable.db");
    const where = async (args: string[], env = {}) =>
      (await runSessions(["list", ...args], env)).stdout.split(" ").at(-1);
    expect(await where([], { HOME: root })).toMatch(/claude-agents-mcp.store\.db\.\n$/);
    expect(await where(["--config", config])).toBe(`${join(root, "of-file.db")}.\n`);
    expect(await where([], { CLAUDE_CODE_MCP_CONFIG: config })).toBe(`${join(root, "of-file.db")}.\n`);
    expect(await where(["--config", config], { CLAUDE_CODE_MCP_STORE })).toBe(`${CLAUDE_CODE_MCP_STORE}.\n`);
    expect(await where([`--store=${root}/of-flag.db`], { CLAUDE_CODE_MCP_STORE })).toBe(
      `${join(root, "of-flag.db")}.\n`,
    );
  });

  it("a file that is not a database is refused as a store", async () => {
    const file = join(root, "other.db");
    writeFileSync(file, "This is no database, and never was one.".repeat(99));
    expect(await runSessions(["list", "--store", file])).toEqual(
      expectedRefusal(1, `^claude-agents-mcp: .*${file}.*\n$`),
    );
  });
});

describe("command lines of `sessions`", () => {
  it.each<[string[], string]>([
    [["lst"], 'Unknown verb "lst". Did you mean list?'],
    [
      ["list", "--statu", "idle"],
      "sessions list: Unknown option '--statu'. Did you mean --status? It takes --status, ",
    ],
    [["delete"], "sessions delete needs the ids of sessions, or else --older-than, for instance 30d."],
  ])("the command line %j ends with one line on stderr and exit code 2", async (args, beginning) => {
    const { status, stderr, stdout } = await runSessions(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    const line = `claude-agents-mcp: ${beginning}`;
    expect(stderr.slice(0, line.length)).toBe(line);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  it("the help of `sessions` has lines of at most 100 columns", async () => {
    const { status, stdout } = await runSessions(["--help"]);
    expect(stdout).toMatch(/^Usage: claude-agents-mcp sessions \[<verb>\] \[flags\]/);
    for (const word of ["list", "show ID", "export ID", "delete ID", "--older-than", "--force", "--since"]) {
      expect(stdout).toContain(word);
    }
    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
    expect([status, (await runSessions(["list", "-h"])).stdout]).toEqual([0, stdout]);
  });
});
