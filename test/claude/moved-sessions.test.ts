import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { TwoHomes } from "../kit/clients/two-homes.ts";
import { repository } from "../kit/git-repository.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** A session of the real Claude Code that moves to another home, with another configuration folder and another folder. */

const world = useWorld({ daemon: "never" });
let server: Server;
beforeAll(async () => {
  server = await world.server({ args: ["--allow-rules", "Bash(*)"] });
});

describe("a session that moves", () => {
  it("Claude Code knows the conversation, its subagents, long results and checkpoints", async () => {
    const homes = new TwoHomes(world);
    const cwd = world.folder();
    repository(cwd, "begin");
    const subagent = {
      description: "d",
      prompt: `Do. ${scriptTag([{ text: "Subagent done." }])}`,
      subagent_type: "general-purpose",
    };
    const script = [
      { tools: [{ name: "Agent", input: subagent }] },
      { tools: [{ name: "Read", input: { file_path: join(cwd, "b.txt") } }] },
      { tools: [{ name: "Edit", input: { file_path: join(cwd, "b.txt"), old_string: "b", new_string: "by Claude" } }] },
      { tools: [{ name: "Bash", input: { command: "yes hello | head -c 100000" } }] },
      { text: "The word is PELICAN." },
    ];
    const options = { permissionMode: "acceptEdits", advanced: { enableFileCheckpointing: true } };
    const first = await server.call("claude_code", { prompt: scriptTag(script), cwd, waitMs: 30_000, ...options });
    const { sessionId } = first;
    expect(first).toMatchObject({ status: "idle", result: { result: "The word is PELICAN." } });
    const { file } = await homes.pack(sessionId);
    await server.close();

    const { environment, home, run } = homes.another();
    const target = join(home, "moved");
    const unpacked = await run("unpack", file, "--cwd", target);
    expect(unpacked).toMatchObject({ status: 0, stderr: "" });
    expect(readFileSync(join(target, "b.txt"), "utf8")).toBe("by Claude\n");
    const two = await world.server({ env: environment });
    const prompt = scriptTag([{ text: "Second." }]);
    const second = await two.call("claude_code_reply", { sessionId, prompt, waitMs: 30_000 });
    expect(second).toMatchObject({
      status: "idle",
      result: { result: "Second.", sessionTotalTurns: 6 },
    });
    const asked = JSON.stringify(world.model.requests.at(-1));
    expect(asked).toContain("PELICAN");
    // Claude Code tells the model where it works now.
    expect(asked).toContain(target);
    const project = join(environment.CLAUDE_CONFIG_DIR, "projects", target.replaceAll(/[^a-zA-Z0-9]/g, "-"), sessionId);
    for (const folder of ["subagents", "tool-results"]) expect(existsSync(join(project, folder))).toBe(true);
    // Claude Code restores files from checkpoints only in a folder of the same path.
    expect(existsSync(join(environment.CLAUDE_CONFIG_DIR, "file-history", sessionId))).toBe(true);
  });
});
