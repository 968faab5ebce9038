import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { Listed, runSessions } from "../kit/clients/sessions-command.ts";
import { allowRequest, BACK_PROMPT, writing } from "../kit/faults/driving.ts";
import { countLost, expectUsable, Watcher } from "../kit/faults/watcher.ts";
import { describePostgres, useDatabase } from "../kit/postgres/database.ts";
import { useWorld } from "../kit/world.ts";

/** Servers on PostgreSQL: a client sees the same as on SQLite. */

describePostgres("a server on PostgreSQL", () => {
  const database = useDatabase();
  const world = useWorld({ agent: "stand-in", daemon: "never" });
  const start = async () => world.server({ args: database().flags() });

  it("a session asks, is approved, replied to, interrupted and closed, and the command line lists and exports it", async () => {
    const server = await start();
    const cwd = world.folder();
    const file = join(cwd, "a.txt");
    const { sessionId } = await server.call("claude_code", { prompt: writing(file), cwd });
    expect(await allowRequest(server, sessionId)).toMatchObject({ status: "idle", result: { result: "Written." } });
    expect(readFileSync(file, "utf8")).toBe("hello");
    await expectUsable(server, sessionId, BACK_PROMPT);

    const gate = `never-${cwd}`;
    await server.call("claude_code_reply", { sessionId, prompt: scriptTag([{ gateBefore: gate, text: "x" }]) });
    await world.model.waitForRequest((request) => request.lastUserText.includes(gate));
    await server.call("claude_code_session", { action: "interrupt", sessionId });
    expect(await server.end(sessionId)).toMatchObject({ result: { errorSubtype: "interrupted" } });
    await server.call("claude_code_session", { action: "close", sessionId });

    const listed = await runSessions(["list", "--json", ...database().flags()]);
    expect(listed.stderr).toBe("");
    expect(Listed.parse(JSON.parse(listed.stdout)).sessions).toMatchObject([{ sessionId, status: "closed" }]);
    const exported = await runSessions(["export", sessionId, ...database().flags()]);
    expect(exported.stdout.trim().split("\n").length).toBeGreaterThan(10);
    await server.close();
    // Nothing of the store is on this machine.
    expect(existsSync(join(world.environment["HOME"] ?? "", ".local/state/claude-agents-mcp/store.db"))).toBe(false);
  });

  it("a session of a SQLite store is unpacked into the database, and goes on at the server of the folder", async () => {
    const sqlite = await world.server();
    const started = { prompt: scriptTag([{ text: "one" }]), cwd: world.folder(), waitMs: 20_000 };
    const { sessionId } = await sqlite.call("claude_code", started);
    const [home, file] = [world.folder(), join(world.folder(), "s.session")];
    expect(await runSessions(["pack", sessionId, "--output", file], world.environment)).toMatchObject({ status: 0 });
    const there = { ...world.environment, CLAUDE_CONFIG_DIR: join(home, "claude") };
    const unpack = ["unpack", file, "--cwd", join(home, "moved"), "--node", "here", ...database().flags()];
    expect(await runSessions(unpack, there)).toMatchObject({ status: 0, stderr: "" });
    const server = await world.server({
      args: database().flags(),
      env: { ...there, ...world.settings({ node: "here" }) },
    });
    const prompt = scriptTag([{ text: "two" }]);
    const done = await server.call("claude_code_reply", { sessionId, prompt, waitMs: 20_000 });
    expect(done).toMatchObject({ status: "idle", result: { result: "two", sessionTotalTurns: 2 } });
    await Promise.all([sqlite.close(), server.close()]);
  });

  it("two servers drive each other's sessions, and the second takes over after kill -9 of the first", async () => {
    const [owner, other] = [await start(), await start()];
    const cwd = world.folder();
    const { sessionId } = await owner.call("claude_code", { prompt: writing(join(cwd, "a.txt")), cwd });
    const watcher = new Watcher(other);
    const following = watcher.follow(sessionId);
    expect(await allowRequest(other, sessionId)).toMatchObject({ status: "idle", result: { result: "Written." } });
    await following;
    const gate = `never-${cwd}`;
    await other.call("claude_code_reply", { sessionId, prompt: scriptTag([{ gateBefore: gate, text: "x" }]) });
    await world.model.waitForRequest((request) => request.lastUserText.includes(gate));
    process.kill(owner.pid, "SIGKILL");
    await owner.gone;
    await expectUsable(other, sessionId, BACK_PROMPT);
    expect(await countLost(other, sessionId, watcher.seen)).toBe(0);
    await other.close();
  });

  it("variables of libpq neither change the store nor are kept from sessions", async () => {
    const env = {
      PGHOST: "203.0.113.1",
      PGUSER: "nobody",
      PGPASSWORD: "wrong",
      PGDATABASE: "none",
      PGOPTIONS: "-c x=y",
    };
    const server = await world.server({ args: database().flags(), env });
    const prompt = scriptTag([
      { tools: [{ name: "Bash", input: { command: "env | grep ^PGHOST" } }] },
      { text: "Done." },
    ]);
    const begun = await server.call("claude_code", {
      prompt,
      cwd: world.folder(),
      allowedTools: ["Bash"],
      waitMs: 20_000,
    });
    expect(begun).toMatchObject({ status: "idle", result: { result: "Done." } });
    const { events } = await server.news(begun.sessionId, 1);
    expect(JSON.stringify(events)).toContain("PGHOST=203.0.113.1");
    await server.close();
  });
});
