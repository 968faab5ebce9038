import { execFile } from "node:child_process";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server as Listener } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { amount } from "../kit/runner/amount.ts";
import { runScript } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import type { World } from "../kit/world.ts";
import {
  bash,
  bypass,
  createSandboxed,
  outputs,
  SECRET,
  playTools,
  write,
  type Sandboxed,
} from "../kit/attacks/sandboxed-server.ts";
import { SPELLINGS } from "../kit/attacks/touch-spellings.ts";

const runs = promisify(execFile);

/** Number of spellings that run concurrently without a sandbox. */
const AT_ONCE = 8;

let sandboxed: Sandboxed;
let world: World;
let server: Server;
let outside: string;
let project: string;
beforeAll(async () => {
  sandboxed = await createSandboxed();
  ({ world, server, outside, project } = sandboxed);
});
afterAll(async () => world.close());

describe("writes of a sandboxed session outside its folders", () => {
  // Every third spelling, or all with AMOUNTS=full: the kernel refuses the write of any spelling.
  const named = Object.entries(SPELLINGS).filter((_, at) => at % amount(3, 1) === 0);

  it("no spelling of a command writes outside, though each works without a sandbox", async () => {
    const free = world.folder();
    const tryFreely = async ([name, spelled]: (typeof named)[number], index: number): Promise<string[]> => {
      const folder = join(free, String(index));
      mkdirSync(folder);
      const trying = runs("bash", ["-c", spelled(join(folder, "M"))], { cwd: folder, timeout: 20_000 });
      trying.child.stdin?.end();
      await trying.catch(() => undefined);
      return lstatSync(join(folder, "M"), { throwIfNoEntry: false }) ? [] : [name];
    };
    const ineffective: string[] = [];
    for (let at = 0; at < named.length; at += AT_ONCE) {
      const some = named.slice(at, at + AT_ONCE).map(async (each, index) => tryFreely(each, at + index));
      ineffective.push(...(await Promise.all(some)).flat());
    }
    expect(ineffective).toEqual([]);

    const cwd = world.folder();
    const before = readdirSync(outside);
    await playTools(
      server,
      named.map(([, spelled], index) => bash(`touch tried-${String(index)}\n${spelled(join(outside, "M"))}`)),
      { cwd },
    );
    const tried = readdirSync(cwd).filter((name) => name.startsWith("tried-"));
    expect(tried).toHaveLength(named.length);
    expect(readdirSync(outside)).toEqual(before);
  }, 300_000);

  it("an unsandboxed command, a background command and a file tool write nothing outside, even through a link", async () => {
    const cwd = world.folder();
    const before = readdirSync(outside);
    const done = await playTools(
      server,
      [
        bash(`ln -s ${outside} way; echo made > inside`),
        bash(`touch ${outside}/M`, { dangerouslyDisableSandbox: true }),
        bash(`touch ${outside}/M`, { run_in_background: true }),
        write(join(outside, "M")),
        write(join(cwd, "way", "M")),
        bash("sleep 1"),
      ],
      { cwd },
    );
    expect(readFileSync(join(cwd, "inside"), "utf8")).toBe("made\n");
    expect(outputs(done)).toContain("blockWritesOutsideWorkingDirectories");
    expect(readdirSync(outside)).toEqual(before);
  });

  it("a session in a spare process writes nothing outside", async () => {
    const options = { cwd: project, permissionMode: "default", allowedTools: ["Bash"] };
    const ahead = await sandboxed.another(["--spares", "1"]);
    await playTools(ahead, [bash("true")], options);
    await expect.poll(() => ahead.stderr()).toContain("a spare is ready");
    const spares = new Set(world.processes().flatMap(({ command }) => /--session-id=(\S+)/.exec(command)?.[1] ?? []));
    const before = readdirSync(outside);
    const { sessionId } = await playTools(ahead, [bash(`touch inside; touch ${outside}/M`)], options);
    expect(spares).toContain(sessionId);
    expect(existsSync(join(project, "inside"))).toBe(true);
    expect(readdirSync(outside)).toEqual(before);
  });

  it("a session writes nothing outside after approval of another folder", async () => {
    const cwd = world.folder();
    const before = readdirSync(outside);
    const script = [{ tools: [bash("touch inside")] }, { tools: [write(join(outside, "M"))] }, { text: "tried" }];
    const asked = await runScript(server, script, { cwd });
    const { sessionId } = asked;
    const requestId = asked.actions[0]?.requestId;
    const updatedPermissions = [
      { type: "addDirectories", directories: [outside] },
      { type: "addRules", behavior: "allow", rules: [{ toolName: "Edit" }, { toolName: "Write" }] },
    ];
    const decision = {
      action: "respond_permission",
      sessionId,
      requestId,
      decision: "allow",
      permissionOptions: { updatedPermissions },
    };
    await server.call("claude_code_check", decision);
    const done = await server.end(sessionId);
    expect(done.result?.result).toBe("tried");
    expect(existsSync(join(cwd, "inside"))).toBe(true);
    expect(readdirSync(outside)).toEqual(before);
  });
});

describe("reads and connections of a sandboxed session", () => {
  it("a file that a rule denies cannot be read by any command", async () => {
    const cwd = world.folder();
    mkdirSync(join(cwd, "sub"));
    for (const file of [".env", "sub/.env"]) writeFileSync(join(cwd, file), SECRET);
    writeFileSync(join(cwd, "plain"), "in plain sight");
    const program = `process.stdout.write(require("fs").readFileSync(".e" + "nv", "utf8"))`;
    const done = await playTools(
      server,
      [
        bash("grep -rs . ."),
        bash("cat .e*; cat sub/.e??"),
        bash("tar c . | grep -a secret"),
        bash(`node -e '${program}'; a=nv; cat .e$a sub/.e$a`),
        bash("cp -r . ../copy; cp -r . copy; mv sub sub2; grep -r secret copy sub2; ln .e* hard; cat hard"),
        bash(`cd ${outside} && cat s*; head -c 100 /proc/self/root${outside}/sec*`),
      ],
      { cwd },
    );
    // Includes everything that was sent to the model.
    const transcript = world.transcript(done.sessionId);
    const isSent = [transcript.includes("in plain sight"), transcript.includes(SECRET)];
    expect(isSent).toEqual([true, false]);
  });

  it("sockets and ports of the machine cannot be reached", async () => {
    const cwd = world.folder();
    let reached = 0;
    const listen = async (at: string | number): Promise<Listener> => {
      const listener = createServer((socket) => {
        reached++;
        socket.end("reached");
      });
      await new Promise<void>((resolve) =>
        typeof at === "string" ? listener.listen(at, resolve) : listener.listen(at, "127.0.0.1", resolve),
      );
      return listener;
    };
    const [unix, tcp] = [await listen(join(cwd, "socket")), await listen(0)];
    const address = tcp.address();
    const port = String(typeof address === "object" ? address?.port : "");
    const connect = (at: string) =>
      `node -e 'require("net").connect(${at}).on("error", (e) => console.log("no", e.code)).pipe(process.stdout)'`;
    const done = await playTools(
      server,
      [
        bash(connect('"socket"')),
        bash(connect(port)),
        bash(`curl -sS -m 3 http://127.0.0.1:${port}/; curl -sS -m 3 --noproxy '*' http://127.0.0.1:${port}/`),
        bash(`exec 3<> /dev/tcp/127.0.0.1/${port} && cat <&3`),
        bash("curl -sS -m 5 http://example.com/ -o /dev/null -w '%{http_code}'"),
      ],
      { cwd },
    );
    unix.close();
    tcp.close();
    expect(reached).toBe(0);
    expect(outputs(done).match(/^no E/gm)).toHaveLength(2);
    // Claude Code's own proxy stands in for the network, and refuses every host that is not listed.
    expect(outputs(done)).toContain("403");
  });
});

describe("Claude Code's own network tools", () => {
  it("WebFetch needs approval even in bypassPermissions, because it runs outside the sandbox", async () => {
    const input = { url: "http://example.com/", prompt: "what is there" };
    const script = [{ tools: [{ name: "WebFetch", input }] }, { text: "tried" }];
    const asked = await runScript(server, script, { ...bypass, cwd: world.folder() });
    expect(asked.actions.map(({ toolName }) => toolName)).toEqual(["WebFetch"]);
    await server.call("claude_code_session", { action: "cancel", sessionId: asked.sessionId });
  });
});
