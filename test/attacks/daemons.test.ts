import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { constants } from "../kit/servers/constants.ts";
import { ALL_KINDS, leaveDaemons, type Kind } from "../kit/sessions/background-commands.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld, type World } from "../kit/world.ts";

/** Processes left behind by Bash end with the session: each kind, at each end of session or server, by each means. */

/** `real` for cases that depend on Claude Code itself: the default means, and a pid namespace. */
const real = useWorld();
const standIn = useWorld({ agent: "stand-in" });

const WITHIN_MS = 10_000;

type End = (server: Server, sessionId: string) => Promise<unknown>;

const ENDS: Record<string, End> = {
  close: async (server, sessionId) => server.call("claude_code_session", { action: "close", sessionId }),
  cancel: async (server, sessionId) => server.call("claude_code_session", { action: "cancel", sessionId }),
  "end of stdin": async (server) => server.close(),
  "SIGTERM of the server": async (server) => killed(server, "SIGTERM"),
  "SIGKILL of the server": async (server) => killed(server, "SIGKILL"),
};

async function killed(server: Server, signal: NodeJS.Signals): Promise<void> {
  process.kill(server.pid, signal);
  await server.gone;
}

/** Returns a PATH folder with all programs but `program`. */
function pathWithout(program: string): string {
  const folder = join(standIn.folder(), "bin");
  mkdirSync(folder);
  for (const name of readdirSync("/usr/bin")) {
    if (name !== program) symlinkSync(join("/usr/bin", name), join(folder, name));
  }
  return folder;
}

interface Means {
  /** Default: `standIn`. */
  world?: World;
  args?: string[];
  env?: Record<string, string>;
  /** Default: all of `ENDS`. */
  ends?: string[];
  without?: string;
  says: string;
  survive: Kind[];
}

const MEANS: Record<string, Means> = {
  "a variable and a number": { world: real, says: "variable and number", survive: [] },
  "a variable and a number, without setpriv": {
    env: constants({ reaperAlone: true }),
    ends: ["SIGKILL of the server"],
    says: "variable and number",
    survive: [],
  },
  "a pid namespace of the session's own": {
    world: real,
    args: ["--process-isolation", "pid-namespace"],
    ends: ["close", "SIGKILL of the server"],
    says: "pid namespace",
    survive: [],
  },
  "a pid namespace around the stand-in": {
    args: ["--process-isolation", "pid-namespace"],
    ends: ["cancel", "end of stdin", "SIGTERM of the server"],
    says: "pid namespace",
    survive: [],
  },
  "a variable alone, where prlimit is missing": {
    without: "prlimit",
    ends: ["close", "SIGKILL of the server"],
    says: "variable",
    survive: ["env -i setsid", "env -u CLAUDE_CODE_MCP_PROCESS setsid"],
  },
};

/** Ends after which the server still runs. */
const ENDS_OF_SESSION = new Set(["close", "cancel"]);

describe.each(Object.entries(MEANS))(
  "ending of daemons by %s",
  (_, { args = [], ends, env, says, survive, without, world = standIn }) => {
    let living: Server | undefined;

    it.each(ends ?? Object.keys(ENDS))("daemons of a session end on %s", async (name) => {
      const start = async () =>
        world.server({ args, env: { ...env, ...(without !== undefined && { PATH: pathWithout(without) }) } });
      const server = (living ??= await start());
      if (!ENDS_OF_SESSION.has(name)) living = undefined;
      const daemons = await leaveDaemons(server, { cwd: world.folder() });
      expect(new Set(daemons.left().map(({ kind }) => kind))).toEqual(new Set(ALL_KINDS));
      const { sessionId } = daemons;
      // Some processes start after the end of the turn, and are found by the next scan.
      const shown = async () =>
        (await server.call("claude_code_check", { action: "poll", sessionId, waitMs: 0 })).background;
      await expect.poll(shown).toHaveLength(ALL_KINDS.length - survive.length);
      await ENDS[name]?.(server, sessionId);
      const left = await daemons.leftAfter(survive.length === 0 ? WITHIN_MS : 4_000);
      daemons.kill();
      expect(left).toEqual(survive);
      const line = server
        .stderr()
        .split("\n")
        .find((each) => each.includes("foundBy"));
      expect(JSON.parse(line ?? "{}")).toMatchObject({ foundBy: says, survives: survive });
    });
  },
);

it("a server that requires a pid namespace does not start without one, and says what is missing", () => {
  const args = ["dist/cli/main.js", "serve", "--daemon", "off", "--process-isolation", "pid-namespace"];
  const { status, stderr } = spawnSync(process.execPath, args, { env: { PATH: standIn.folder() }, encoding: "utf8" });
  expect(status).toBe(2);
  expect(stderr).toMatch(
    /is not available here \(.*bwrap: is not installed\)\. Run the server as root, or install bubblewrap/,
  );
});
