import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { ESCAPES, plant, ROADS, type Place } from "../support/escapes.ts";
import { hostile } from "../support/hostile-settings.ts";
import type { HttpServer } from "../support/http-server.ts";
import { namedUsers } from "../support/named-users.ts";
import { useWorld } from "../support/world.ts";

/** What the sessions of a user by name may use, as the operator has settled it for her, seen from outside. */

const world = useWorld({ agent: "stand-in" });
/** For what Claude Code does with settings, a wrapper and signals. */
const real = useWorld();

const USUAL = { scopes: ["read", "run", "approve"] };
const say = (text: string) => scriptTag([{ text }]);

describe("ada, who is kept in a folder by allowDirs,", () => {
  let place: Place;
  let server: HttpServer;
  let token: string;
  beforeAll(async () => {
    const root = world.folder();
    place = { allowed: join(root, "allowed"), outside: join(root, "outside") };
    for (const folder of [place.allowed, place.outside]) mkdirSync(folder);
    // With the options of the operator too: what is in them is judged like the rest.
    const ada = { ...USUAL, allowDirs: [place.allowed], operatorOptions: true };
    const users = namedUsers({ ada });
    token = users.tokens.ada;
    server = await world.http({ args: [...users.args, "--allow-disk-resume", "--store", join(root, "store.db")] });
  });

  it.each(ESCAPES)(
    "does not get out by $how, with any argument that names a folder or a file",
    async ({ folder, how }) => {
      const client = await server.connect("modern", token);
      const way = folder(place);
      if (way !== "/") plant(way);
      for (const { args, argument, tool } of ROADS) {
        const { code, text } = await client.refusal(tool, args(way, place));
        expect([argument, code]).toEqual([argument, "INVALID_ARGUMENT"]);
        expect(text).toContain(`${argument}: `);
        expect(text).toContain("--allow-dir");
      }
      expect([how, (await client.call("claude_code_session", { action: "list" })).sessions]).toEqual([how, []]);
    },
  );

  it("goes on with no session that Claude Code has on disk from elsewhere, and does not hear where it was", async () => {
    const client = await server.connect("modern", token);
    const elsewhere = await world.http({ args: ["--store", join(world.folder(), "elsewhere.db")] });
    const operator = await elsewhere.connect();
    const told = async (cwd: string) => {
      const { sessionId } = await operator.call("claude_code", { prompt: say("one"), cwd, waitMs: 40_000 });
      await operator.call("claude_code_session", { action: "close", sessionId });
      await expect.poll(() => world.processes().some(({ command }) => command.includes(sessionId))).toBe(false);
      return sessionId;
    };
    const prompt = say("two");
    const sessionId = await told(place.outside);
    for (const more of [{}, { forkSession: true }, { diskResumeConfig: { cwd: place.allowed } }]) {
      const { code, text } = await client.refusal("claude_code_reply", { sessionId, prompt, ...more });
      expect([more, code]).toEqual([more, "INVALID_ARGUMENT"]);
      expect(text).not.toContain(place.outside);
    }
    const inside = { sessionId: await told(place.allowed), prompt, waitMs: 40_000 };
    expect((await client.call("claude_code_reply", inside)).result?.result).toBe("two");
  });

  it("works inside, and the operator of the same server outside", async () => {
    const [client, operator] = [await server.connect("legacy", token), await server.connect("modern")];
    const run = { prompt: say("in"), waitMs: 40_000 };
    expect((await client.call("claude_code", { ...run, cwd: place.allowed })).result?.result).toBe("in");
    expect((await operator.call("claude_code", { ...run, cwd: place.outside })).result?.result).toBe("in");
  });
});

/** A repository's own settings are for whoever has been told to trust them. */
describe("the settings of a folder", () => {
  const quick = { env: { MCP_TIMEOUT: "1000" } };
  afterEach(async () => real.closeServers());

  it("run nothing over HTTP, for the operator neither, whatever Claude Code has recorded as trusted", async () => {
    const users = namedUsers({ ada: USUAL });
    const { cwd, ran } = hostile(real);
    const trusted = { projects: { [cwd]: { hasTrustDialogAccepted: true } } };
    await real.closeServers();
    await real.quiet(15_000);
    writeFileSync(join(real.configFolder, ".claude.json"), JSON.stringify(trusted));
    const server = await real.http({ args: users.args, ...quick });
    for (const token of [users.tokens.ada, server.token]) {
      const client = await server.connect("modern", token);
      const { sessionId } = await client.call("claude_code", { prompt: say("hi"), cwd, waitMs: 40_000 });
      const { events, status } = await client.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
      expect(status).toBe("idle");
      expect(JSON.stringify(events)).toContain("untrusted_directory");
    }
    expect(ran()).toEqual([]);
  });

  it("run for whom trustDirs names it, and for nobody else", async () => {
    const { cwd, ran } = hostile(real);
    const { args, tokens } = namedUsers({ ada: { ...USUAL, trustDirs: [cwd] }, bob: USUAL });
    const server = await real.http({ args, ...quick });
    const start = { prompt: say("hi"), cwd, waitMs: 40_000 };
    await (await server.connect("modern", tokens.bob)).call("claude_code", start);
    expect(ran()).toEqual([]);
    await (await server.connect("modern", tokens.ada)).call("claude_code", start);
    expect(ran()).toContain("project-hook");
  });
});

describe("the real Claude Code of a user", () => {
  const transcriptsIn = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".jsonl"));
  afterEach(async () => real.closeServers());

  it("has her own configuration folder: claudeConfigDir", async () => {
    const [hers, cwd] = [real.folder(), real.folder()];
    writeFileSync(join(hers, "CLAUDE.md"), "I am ada.");
    const { args, tokens } = namedUsers({ ada: { ...USUAL, claudeConfigDir: hers }, bob: USUAL });
    const server = await real.http({ args });
    const runs = async (token: string) => {
      const client = await server.connect("modern", token);
      const { sessionId } = await client.call("claude_code", { prompt: say("hi"), cwd, waitMs: 40_000 });
      return sessionId;
    };
    const [ofAda, ofBob] = [await runs(tokens.ada), await runs(tokens.bob)];
    expect(transcriptsIn(hers).join()).toContain(ofAda);
    expect(real.transcript(ofAda)).toBe("");
    expect(transcriptsIn(hers).join()).not.toContain(ofBob);
    expect(real.transcript(ofBob)).not.toBe("");
    const request = (id: string) => real.model.requests.find(({ sessionId }) => sessionId === id);
    expect(request(ofAda)?.told).toContain("I am ada.");
    expect(request(ofBob)?.told).not.toContain("I am ada.");
  });

  // Only the wrapper is told of the server's death: one that stays above what it runs would have to hand that on.
  it.each([
    ["turn", ""],
    ["server", "exec "],
  ] as const)("runs through her spawnWrapper; nothing is left when the %s is killed", async (what, exec) => {
    const [traces, cwd] = [real.folder(), real.folder()];
    const wrapper = join(traces, "as-ada.sh");
    const run = `#!/bin/sh\necho "$1 $2" >> ${traces}/ran\nshift\nexport AS=ada\n${exec}"$@"\n`;
    writeFileSync(wrapper, run, { mode: 0o755 });
    const { args, tokens } = namedUsers({ ada: { ...USUAL, spawnWrapper: [wrapper, "ada"] }, bob: USUAL });
    const server = await real.http({ args });
    const [ada, bob] = [await server.connect("modern", tokens.ada), await server.connect("modern", tokens.bob)];
    const plain = { prompt: say("plain"), cwd: real.folder(), waitMs: 40_000 };
    expect((await bob.call("claude_code", plain)).result?.result).toBe("plain");
    expect(readdirSync(traces)).not.toContain("ran");

    const command = `printf "$AS" > as; node -e 'setInterval(() => {}, 1000)'`;
    const script = [{ tools: [{ name: "Bash", input: { command } }] }, { text: "never" }];
    const start = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"] };
    const { sessionId } = await ada.call("claude_code", start);
    await expect.poll(() => real.processes().some(({ command: each }) => each.startsWith("node -e"))).toBe(true);
    expect(readFileSync(join(cwd, "as"), "utf8")).toBe("ada");
    expect(readFileSync(join(traces, "ran"), "utf8")).toMatch(/^ada .*claude\n$/);
    if (what === "turn") await ada.call("claude_code_session", { action: "cancel", sessionId });
    else server.signal("SIGKILL");
    await expect
      .poll(() =>
        real.processes().filter(({ command: each }) => each.includes(sessionId) || each.startsWith("node -e")),
      )
      .toEqual([]);
  });
});
