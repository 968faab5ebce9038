import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { ESCAPES, plantImage, PATH_ARGUMENTS, type AttackFolders } from "../kit/attacks/escapes.ts";
import { createHostileSettings } from "../kit/attacks/hostile-settings.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Confinement of a named user's sessions by the operator's terms, seen from outside. */

const world = useWorld({ agent: "stand-in" });
/** Runs the real Claude Code, for its settings, wrappers and signals. */
const real = useWorld();

const USUAL = { scopes: ["read", "run", "approve"] };
const say = (text: string) => scriptTag([{ text }]);

describe("confinement of a user by allowDirs", () => {
  let place: AttackFolders;
  let server: HttpServer;
  let token: string;
  beforeAll(async () => {
    const root = world.folder();
    place = { allowed: join(root, "allowed"), outside: join(root, "outside") };
    for (const folder of [place.allowed, place.outside]) mkdirSync(folder);
    // With `operatorOptions`, so that folders in those options are checked too.
    const ada = { ...USUAL, allowDirs: [place.allowed], operatorOptions: true };
    const users = namedUsers({ ada });
    token = users.tokens.ada;
    server = await world.http({ args: [...users.args, "--allow-disk-resume", "--store", join(root, "store.db")] });
  });

  it.each(ESCAPES)(
    "a user with allowDirs does not get out by $how, with any argument that names a folder or a file",
    async ({ folder, how }) => {
      const client = await server.connect("modern", token);
      const way = folder(place);
      if (way !== "/") plantImage(way);
      for (const { args, argument, tool } of PATH_ARGUMENTS) {
        const { code, text } = await client.refusal(tool, args(way, place));
        expect([argument, code]).toEqual([argument, "INVALID_ARGUMENT"]);
        expect(text).toContain(`${argument}: `);
        expect(text).toContain("--allow-dir");
      }
      expect([how, (await client.call("claude_code_session", { action: "list" })).sessions]).toEqual([how, []]);
    },
  );

  it("a confined user cannot resume a session that Claude Code stored outside, and does not learn its folder", async () => {
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

  it("a confined user works inside allowDirs, and the operator of the same server outside", async () => {
    const [client, operator] = [await server.connect("legacy", token), await server.connect("modern")];
    const run = { prompt: say("in"), waitMs: 40_000 };
    expect((await client.call("claude_code", { ...run, cwd: place.allowed })).result?.result).toBe("in");
    expect((await operator.call("claude_code", { ...run, cwd: place.outside })).result?.result).toBe("in");
  });
});

/** Users of a server with different terms; `bob` has none. */
describe("the real Claude Code under the terms of a user", () => {
  /** Repositories whose settings run commands: `trusted` by a user's `trustDirs`, `recorded` as trusted by Claude Code. */
  let trusted: ReturnType<typeof createHostileSettings>;
  let recorded: ReturnType<typeof createHostileSettings>;
  let hers: string;
  let traces: string;
  let server: HttpServer;
  let bobs: string;
  const names = ["ada", "bob", "cleo", "wanda", "xenia"] as const;
  let tokens: Readonly<Record<(typeof names)[number], string>>;
  const transcriptsIn = (folder: string) =>
    readdirSync(join(folder, "projects"), { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".jsonl"),
    );
  const run = async (token: string, cwd: string) => {
    const client = await server.connect("modern", token);
    const { sessionId } = await client.call("claude_code", { prompt: say("hi"), cwd, waitMs: 40_000 });
    return { client, sessionId };
  };
  /** Wrapper that stays the parent of its command, or becomes the command with `exec`. */
  const wrapper = (name: string, exec: string) => {
    const path = join(traces, `as-${name}.sh`);
    writeFileSync(path, `#!/bin/sh\necho "$1 $2" >> ${traces}/ran\nshift\nexport AS=$0\n${exec}"$@"\n`, {
      mode: 0o755,
    });
    return { ...USUAL, spawnWrapper: [path, name] };
  };
  beforeAll(async () => {
    [trusted, recorded, hers, traces] = [
      createHostileSettings(real),
      createHostileSettings(real),
      real.folder(),
      real.folder(),
    ];
    writeFileSync(join(hers, "CLAUDE.md"), "I am cleo.");
    const projects = { [recorded.cwd]: { hasTrustDialogAccepted: true } };
    writeFileSync(join(real.configFolder, ".claude.json"), JSON.stringify({ projects }));
    const users = namedUsers({
      ada: { ...USUAL, trustDirs: [trusted.cwd] },
      bob: USUAL,
      cleo: { ...USUAL, claudeConfigDir: hers },
      wanda: wrapper("wanda", ""),
      // With `exec`, because a wrapper that stays the parent would have to forward the notice of the server's death.
      xenia: wrapper("xenia", "exec "),
    });
    ({ tokens } = users);
    server = await real.http({ args: users.args, env: { MCP_TIMEOUT: "1000" } });
    ({ sessionId: bobs } = await run(tokens.bob, trusted.cwd));
  });

  it("folder settings run nothing over HTTP without trustDirs, not even for the operator or if recorded as trusted", async () => {
    for (const token of [tokens.bob, server.token]) {
      const { client, sessionId } = await run(token, recorded.cwd);
      const { events, status } = await client.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 });
      expect(status).toBe("idle");
      expect(JSON.stringify(events)).toContain("untrusted_directory");
    }
    const kept = readFileSync(join(real.configFolder, ".claude.json"), "utf8");
    expect(JSON.parse(kept)).toMatchObject({ projects: { [recorded.cwd]: { hasTrustDialogAccepted: true } } });
    expect(recorded.ran()).toEqual([]);
  });

  it("folder settings run for the user whose trustDirs names the folder, and for no other", async () => {
    expect(trusted.ran()).toEqual([]);
    await run(tokens.ada, trusted.cwd);
    expect(trusted.ran()).toContain("project-hook");
  });

  it("sessions of a user with claudeConfigDir use that configuration folder, and other users' sessions do not", async () => {
    const { sessionId: cleos } = await run(tokens.cleo, real.folder());
    expect(transcriptsIn(hers).join()).toContain(cleos);
    expect(real.transcript(cleos)).toBe("");
    expect(transcriptsIn(hers).join()).not.toContain(bobs);
    expect(real.transcript(bobs)).not.toBe("");
    const request = (id: string) => real.model.requests.find(({ sessionId }) => sessionId === id);
    expect(request(cleos)?.told).toContain("I am cleo.");
    expect(request(bobs)?.told).not.toContain("I am cleo.");
  });

  it.each([
    ["turn", "wanda"],
    ["server", "xenia"],
  ] as const)(
    "Claude Code runs through the user's spawnWrapper; nothing is left when the %s is killed",
    async (what, name) => {
      const ran = join(traces, "ran");
      // The wrapper has run for no other user.
      expect(existsSync(ran)).toBe(false);
      const cwd = real.folder();
      const command = `printf "$AS" > as; node -e 'setInterval(() => {}, 1000)'`;
      const script = [{ tools: [{ name: "Bash", input: { command } }] }, { text: "never" }];
      const start = { prompt: scriptTag(script), cwd, allowedTools: ["Bash"] };
      const client = await server.connect("modern", tokens[name]);
      const { sessionId } = await client.call("claude_code", start);
      await expect.poll(() => real.processes().some(({ command: each }) => each.startsWith("node -e"))).toBe(true);
      expect(readFileSync(join(cwd, "as"), "utf8")).toBe(join(traces, `as-${name}.sh`));
      expect(readFileSync(ran, "utf8")).toMatch(new RegExp(`^${name} .*claude\n$`));
      rmSync(ran);
      if (what === "turn") await client.call("claude_code_session", { action: "cancel", sessionId });
      else server.signal("SIGKILL");
      await expect
        .poll(() =>
          real.processes().filter(({ command: each }) => each.includes(sessionId) || each.startsWith("node -e")),
        )
        .toEqual([]);
    },
  );
});
