import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it, vi } from "vitest";
import { scriptTag, type Script } from "../../src/demo/model/script.ts";
import { makeMarker } from "../../src/security/files/volume-marker.ts";
import { describePostgres, useDatabase } from "../kit/postgres/database.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Longer than a lease on PostgreSQL, ms. */
const LEASE_OVER_MS = 50_000;

/** Number of sessions whose last turn is stored. */
const STORED = `SELECT count(*) FROM claude_agents_mcp.sessions s JOIN claude_agents_mcp.transcript_manifests m
  ON m.session_id = s.id AND m.manifest::json->>'eventId' = s.state::json->>'lastTurnEventId'`;

describePostgres("a session in a folder that two servers share", () => {
  const world = useWorld({ daemon: "never" });
  const database = useDatabase();
  let volume: string;
  let cwd: string;
  beforeAll(async () => {
    volume = world.folder();
    cwd = join(volume, "project");
    mkdirSync(cwd);
    await makeMarker(volume);
  });

  /** Starts a server with a configuration folder of its own, whose CLAUDE.md names the node. */
  async function nodeOf(name: string): Promise<Server> {
    const config = mkdtempSync(join(world.configFolder, `${name}-`));
    writeFileSync(join(config, "CLAUDE.md"), `Marker of ${name}.`);
    const args = [...database().flags(), "--node", name, "--shared-folder", volume];
    return world.server({ args, env: { CLAUDE_CONFIG_DIR: config } });
  }

  const say = (text: string, script: Script = [{ text: `Said ${text}.` }]) => `${text}? ${scriptTag(script)}`;
  const toldWith = (prompt: string) =>
    world.model.requests.findLast(({ told }) => told.includes(`${prompt}?`))?.told ?? "";

  it("the other server goes on with it after a shutdown, and after a kill without the turn that was lost", async () => {
    const one = await nodeOf("one");
    const first = await one.call("claude_code", { prompt: say("one"), cwd, waitMs: 40_000 });
    expect(first.result).toMatchObject({ result: "Said one." });
    const { sessionId } = first;
    await one.close();

    const two = await nodeOf("two");
    const second = await two.call("claude_code_reply", { sessionId, prompt: say("two"), waitMs: 40_000 });
    expect(second.result).toMatchObject({ result: "Said two.", isError: false });
    expect(second.result).not.toHaveProperty("warnings");
    for (const text of ["one?", "Marker of two."]) expect(toldWith("two")).toContain(text);

    await vi.waitUntil(async () => (await database().query(STORED)) === "1", 15_000);
    await two.call("claude_code_reply", { sessionId, prompt: say("three", [{ text: "x", gate: "never" }]), waitMs: 0 });
    await world.model.waitForRequest(({ told }) => told.includes("three?"));
    process.kill(two.pid, "SIGKILL");
    const later = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint + ${String(LEASE_OVER_MS)}`;
    await database().query(
      `CREATE OR REPLACE FUNCTION claude_agents_mcp.now_ms() RETURNS bigint LANGUAGE sql AS 'SELECT ${later}'`,
    );
    const three = await nodeOf("three");
    const fourth = await three.call("claude_code_reply", { sessionId, prompt: say("four"), waitMs: 40_000 });
    expect(fourth.result).toMatchObject({
      result: "Said four.",
      warnings: [expect.stringMatching(/from the end of turn 2: turn 3 is missing from Claude Code's memory/)],
    });
    expect(toldWith("four")).toContain("two?");
    expect(toldWith("four")).not.toContain("three?");
    await three.call("claude_code_session", { action: "close", sessionId });
    await three.call("claude_code_session", { action: "delete", sessionId });
    const copies = "SELECT count(*) FROM claude_agents_mcp.transcript_parts";
    expect(await database().query(copies)).toBe("0");
    expect(await database().query(copies.replace("parts", "manifests"))).toBe("0");
  });
});
