import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";
import { listSessions, expectedRefusal, runSessions } from "../kit/clients/sessions-command.ts";

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-sessions-")));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

describe("sessions of a real server", () => {
  const world = useWorld({ agent: "stand-in", daemon: "never" });
  let store: string[];
  beforeAll(() => {
    store = ["--store", join(root, "real.db")];
  });

  it("a session is listed but cannot be deleted while its server runs; afterwards it is shown, exported and deleted", async () => {
    const server = await world.server({ args: store });
    const cwd = world.folder();
    const [allowed, denied] = [join(cwd, "a.txt"), join(cwd, "b.txt")];
    const script = [
      { text: "# I write\n\n```\ntwo files.", tools: [{ name: "Write", input: { file_path: allowed, content: "a" } }] },
      { tools: [{ name: "Write", input: { file_path: denied, content: "b" } }] },
      { text: "One is written." },
    ];
    const prompt = `Write\u001b[2J two files.\n${scriptTag(script)}`;
    const { sessionId } = await server.call("claude_code", { prompt, cwd });
    let asked = await server.news(sessionId);

    // The session has an open request, and waits for a decision.
    expect(await listSessions(...store)).toMatchObject({
      sessions: [{ sessionId, status: "waiting_permission", owned: true, pending: 1, cwd }],
      more: false,
    });
    const open = await runSessions(["show", sessionId, ...store]);
    expect(open).toMatchObject({ status: 0, stderr: "" });
    expect(open.stdout).toMatch(/^Status +waiting_permission$/m);
    expect(open.stdout).toMatch(/^Process +live, pid \d+$/m);
    expect(open.stdout).toContain(`${asked.actions[0]?.requestId ?? ""}  Write ${allowed} (is denied in `);
    expect(await runSessions(["delete", sessionId, "--yes", ...store])).toEqual(
      expectedRefusal(1, `^claude-agents-mcp: Session ${sessionId} waits for a decision\\. Cancel it first .*\n$`),
    );

    const answer = { action: "respond_permission", sessionId, cursor: asked.nextCursor };
    const { requestId } = asked.actions[0] ?? {};
    await server.call("claude_code_check", { ...answer, requestId, decision: "allow", waitMs: 0 });
    asked = await server.news(sessionId, asked.nextCursor);
    const no = { requestId: asked.actions[0]?.requestId, decision: "deny", denyMessage: "Not `this`." };
    const done = await server.call("claude_code_check", { ...answer, cursor: asked.nextCursor, ...no });
    expect(done).toMatchObject({ status: "idle", result: { result: "One is written." } });

    // The session is idle, and the server keeps its process.
    expect(await listSessions(...store)).toMatchObject({ sessions: [{ sessionId, status: "idle", owned: true }] });
    expect(await runSessions(["delete", sessionId.slice(0, 6), "--yes", ...store])).toEqual(
      expectedRefusal(1, `Session ${sessionId} is held by a running server`),
    );
    expect(await runSessions(["delete", "--older-than", "2000-01-01", "--yes", ...store])).toEqual({
      status: 0,
      stdout: "Nothing to delete.\n",
      stderr: "",
    });

    await server.close();
    await world.quiet(15_000);

    expect(await listSessions(...store)).toMatchObject({ sessions: [{ sessionId, status: "idle", owned: false }] });
    const table = await runSessions(["list", ...store]);
    expect(table.stdout).toMatch(
      new RegExp(
        `^ID +STATUS .*\n${sessionId.slice(0, 8)}  idle +\\d+s +3  \\$0\\.\\d{4}  .*  Write\\[2J two files\\.`,
      ),
    );

    const shown = await runSessions(["show", sessionId.slice(0, 8).toUpperCase(), "--json", ...store]);
    expect(JSON.parse(shown.stdout)).toMatchObject({
      sessionId,
      prompt,
      totalTurns: 3,
      requests: [],
      promptsWaiting: 0,
      result: { text: "One is written.", outcome: "done" },
    });
    const words = await runSessions(["show", sessionId, ...store]);
    expect(words.stdout).toMatch(/^Process +none: it ended with its server$/m);
    const receipt = "receipt: 1 file \\(1 added; \\+1 -0 lines\\), 1 denied";
    expect(words.stdout).toMatch(
      new RegExp(`\nLast turn: done, 3 model calls in [\\d.]+s\n${receipt}\n\nOne is written\\.\n$`),
    );
    expect(words.stdout + table.stdout).not.toContain("\u001b");

    await expectExports(sessionId, prompt, cwd);

    const [yes, again] = [
      await runSessions(["delete", sessionId, "--yes", ...store]),
      await runSessions(["show", sessionId, ...store]),
    ];
    expect(yes).toEqual({ status: 0, stdout: "1 session deleted.\n", stderr: "" });
    expect(again).toEqual(expectedRefusal(1, `^claude-agents-mcp: There is no session ${sessionId}\\. .*\n$`));
    expect((await runSessions(["list", ...store])).stdout).toBe("No sessions yet.\n");
  });

  async function expectExports(sessionId: string, prompt: string, cwd: string): Promise<void> {
    const log = await runSessions(["export", sessionId, ...store]);
    const Event = z.object({ id: z.number(), at: z.number(), type: z.string(), data: z.looseObject({}) });
    const events = log.stdout
      .trimEnd()
      .split("\n")
      .map((line) => Event.strict().parse(JSON.parse(line)));
    expect(events.map(({ id }) => id)).toEqual(events.map((_, n) => n + 1));
    expect(events[0]).toMatchObject({ type: "prompt.queued", data: { text: prompt } });
    expect(events.map(({ type }) => type)).toEqual(
      expect.arrayContaining(["permission.asked", "permission.answered", "message", "turn.ended"]),
    );

    const file = join(root, "transcript.md");
    const to = ["export", sessionId, "--format", "markdown", "--output", file, ...store];
    writeFileSync(file, "mine");
    expect(await runSessions(to)).toEqual(expectedRefusal(1, `^claude-agents-mcp: ${file} exists\\. .*--force.*\n$`));
    expect(readFileSync(file, "utf8")).toBe("mine");
    rmSync(file);
    const written = { status: 0, stdout: `${String(events.length)} events written to ${file}\n`, stderr: "" };
    expect(await runSessions(to)).toEqual(written);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await runSessions([...to, "--force"])).toEqual(written);
    const transcript = readFileSync(file, "utf8")
      // Before the other replacements, because a random folder name may look like a duration.
      .replaceAll(`${cwd}/`, "")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
      // From 10 s on, a duration has no decimals.
      .replaceAll(/\d+(?:\.\d)?s|\$[\d.]+/g, "N");
    const [head = "", ...rest] = transcript.split("\n## Prompt\n");
    expect(head).toMatch(new RegExp(`^# Session ${sessionId}\n\n- Folder: .*\n- Model: .*\n- Status: idle\n`));
    expect(rest.join("")).toBe(
      [
        "\nTIME\n",
        ...prompt
          .replace("\u001b", "")
          .replaceAll(`${cwd}/`, "")
          .split("\n")
          .map((line) => `> ${line}`),
        "\n**Claude Code**\n\n> # I write\n>\n> ```\n> two files.\n",
        "- calls **Write** `a.txt`",
        "- asks: **Write** `a.txt`",
        "- Write allowed by caller",
        "- Write done: `File created successfully at: a.txt (file state is current in your context — no need to Read it back)`",
        "- calls **Write** `b.txt`",
        "- asks: **Write** `b.txt`",
        "- Write denied by caller: `` Not `this`. ``",
        "- Write failed: `` Not `this`. ``",
        "\n**Claude Code**\n\n> One is written.",
        "\n- receipt: 1 file (1 added; +1 -0 lines), 1 denied",
        "\n### Result: done\n\n3 model calls, N, N; the text above\n",
      ].join("\n"),
    );
  }
});
