import { beforeAll, describe, expect, it } from "vitest";

import { createConsoleApi } from "../../src/console/api.ts";
import type { Scope } from "../../src/domain/principal.ts";
import { ACTIONS } from "../../src/engine/actions/actions.ts";
import { page, tool } from "../kit/actions/drives.ts";
import { NOWHERE, Targets } from "../kit/actions/targets.ts";
import { INVALID_ARGUMENT, pageWay, toolWay, PROMPT, WAYS } from "../kit/actions/ways.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { tools } from "../kit/tools/run.ts";
import { WITH_SECRET } from "../kit/clients/webhook-receiver.ts";
import { useWorld } from "../kit/world.ts";

/** Tests every action on sessions by each tool and page command in `WAYS`, with its scope in `NEEDS`. */

/** Required scope per action. A new action fails here until `NEEDS` has its scope. */
const NEEDS: Readonly<Record<string, Scope>> = {
  start: "run",
  create: "run",
  reply: "run",
  verify: "run",
  continue: "run",
  fork: "run",
  adopt: "run",
  list: "read",
  get: "read",
  events: "read",
  diff: "read",
  receipt: "read",
  interrupt: "run",
  interrupt_prompt: "run",
  cancel: "run",
  close: "run",
  delete: "run",
  rename: "run",
  pack: "admin",
  release_queue: "run",
  drop_queue: "run",
  set_model: "run",
  set_permission_mode: "run",
  stop_task: "run",
  task_output: "read",
  usage: "read",
  rewind: "run",
  answer: "approve",
  revoke: "approve",
  more_time: "approve",
};

const users = namedUsers({
  all: { scopes: ["read", "run", "approve", "admin"] },
  read: { scopes: ["run", "approve", "admin"] },
  run: { scopes: ["read", "approve", "admin"] },
  approve: { scopes: ["read", "run", "admin"] },
  admin: { scopes: ["read", "run", "approve"] },
});

const world = useWorld({ agent: "stand-in" });
let server: HttpServer;
let targets: Targets;
beforeAll(async () => {
  const env = { CLAUDE_CODE_MCP_ALLOW_DISK_RESUME: "1", ...WITH_SECRET };
  server = await world.http({
    args: [
      ...users.args,
      "--toolsets",
      "all",
      "--approvals",
      "caller,console,webhook",
      "--notify-url",
      "http://127.0.0.1:9/",
    ],
    env,
  });
  targets = await Targets.on({ server, token: users.tokens.all, folder: () => world.folder() });
});

describe("actions on sessions", () => {
  it("each action needs the scope in `NEEDS` and is tried in at least one way", () => {
    expect(Object.fromEntries(ACTIONS.map(({ name, scope }) => [name, scope]))).toEqual(NEEDS);
    expect([...new Set(WAYS.map(({ action }) => action))].toSorted()).toEqual(Object.keys(NEEDS).toSorted());
  });

  it("every tool action and every command of the page is tried here", () => {
    const listed = [...tools.values()].flatMap(({ name, scope }) =>
      typeof scope === "string" ? [name] : Object.keys(scope).map((action) => `${name} ${action}`),
    );
    const options = {
      version: "",
      approvers: {},
      cwdOf: () => "/",
      profilesOf: () => ({}),
      allowsBypass: () => false,
      signsIn: true,
    };
    const { routes } = createConsoleApi(() => ({}) as never, options);
    const commands = routes.filter(({ method }) => method === "POST").map(({ path }) => `POST ${path}`);
    const tried = new Set(WAYS.map(({ way }) => way));
    const offered = [...listed.filter((name) => !name.startsWith("claude_code_configure")), ...commands];
    expect(offered.filter((way) => !tried.has(way))).toEqual([]);
  });

  it.each(WAYS)("$action by $way is refused to a caller who lacks only its scope", async ({ action, drive }) => {
    const needed = NEEDS[action] as "admin" | "approve" | "read" | "run";
    expect(await drive(NOWHERE)(server, users.tokens[needed])).toBe("PERMISSION_DENIED");
  });

  it.each(WAYS)("$action by $way is performed for a caller with its scope", async (way) => {
    const target = await targets.for(way);
    expect(await way.drive(target)(server, users.tokens.all)).toBe(way.comesTo ?? "ok");
  });
});

describe("the input of an action", () => {
  const MAX_LENGTH = 2_097_152;
  const session = async () => targets.for({});

  it("a prompt has the same limit at the console and over MCP: 2,097,152 characters", async () => {
    const { cwd } = await session();
    const all = users.tokens.all;
    for (const [length, code] of [
      [MAX_LENGTH, "ok"],
      [MAX_LENGTH + 1, "INVALID_ARGUMENT"],
    ] as const) {
      const prompt = "x".repeat(length);
      expect(await page("POST", "/sessions", { prompt, cwd })(server, all)).toBe(code);
      expect(await tool("claude_code", { prompt, cwd })(server, all)).toBe(code);
    }
  });

  it.each([
    ["a rule of 1,001 characters", "revoke", { rule: "r".repeat(1_001) }],
    ["a title of 201 characters", "rename", { title: "t".repeat(201) }],
    ["a title that is half a character", "rename", { title: "\uD800" }],
  ])("invalid input is refused by the tool and by the console: %s", async (_, action, more) => {
    const { sessionId } = await session();
    expect(await toolWay(action, more).drive({ ...NOWHERE, sessionId })(server, users.tokens.all)).toBe(
      INVALID_ARGUMENT,
    );
    expect(await pageWay(action, () => more).drive({ ...NOWHERE, sessionId })(server, users.tokens.all)).toBe(
      INVALID_ARGUMENT,
    );
  });

  it.each([
    ["a folder of 4,097 characters", { cwd: "/".repeat(4_097) }],
    ["a folder with a NUL", { cwd: "/\0" }],
    ["a model of 201 characters", { model: "m".repeat(201) }],
  ])("an invalid start is refused by the tool and by the console: %s", async (_, more) => {
    const { cwd } = await session();
    const args = { prompt: PROMPT, cwd, ...more };
    expect(await tool("claude_code", args)(server, users.tokens.all)).toBe(INVALID_ARGUMENT);
    expect(await page("POST", "/sessions", args)(server, users.tokens.all)).toBe(INVALID_ARGUMENT);
  });
});
