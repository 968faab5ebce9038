import { setTimeout as sleep } from "node:timers/promises";

import { scriptTag, type Script } from "../../../src/demo/model/script.ts";
import type { Answer, Connection } from "../clients/connection.ts";
import type { Server } from "../servers/stdio-server.ts";
import { storedEvents } from "../store/stored.ts";
import { stream } from "../clients/streaming.ts";
import type { World } from "../world.ts";

/** Work that could outlive its turn (`KINDS`), and ends of turns not caused by Claude Code itself (`ENDS`). */

const bash = (command: string, more = {}) => ({ name: "Bash", input: { command, description: "works", ...more } });

interface Pace {
  /** Delay before each answer of the model. */
  readonly delayMs: number;
  /** First entry of the script. */
  readonly first?: Script[0];
}

/** Asks the model for longer than any turn lasts here; each answer costs 0.02 USD. */
const asking = ({ delayMs, first }: Pace, times: number): Script => [
  ...(first ? [first] : []),
  ...Array.from({ length: times }, () => ({ delayMs, usage: { input_tokens: 10_000 }, tools: [bash("true")] })),
];

function agent(script: Script, inBackground: boolean, description = "an agent") {
  const prompt = `Work. ${scriptTag(script)}`;
  const input = { description, prompt, subagent_type: "general-purpose", run_in_background: inBackground };
  return { name: "Agent", input };
}

const shell = (command: string) => bash(command, { run_in_background: true });
const OVER = { text: "Over." };

const KINDS = {
  "a foreground subagent": (pace) => [{ tools: [agent(asking(pace, 80), false)] }, OVER],
  "a background subagent": (pace) => [
    { tools: [agent(asking(pace, 80), true)] },
    ...asking({ delayMs: pace.delayMs }, 20),
    OVER,
  ],
  // The end of the shell begins a turn of its own and asks the model.
  "a background shell": (pace) => [{ tools: [shell("sleep 5; echo ended")] }, ...asking(pace, 20), OVER],
  "a background subagent of a foreground subagent": (pace) => {
    const outer = asking({ ...pace, first: { tools: [agent(asking(pace, 80), true)] } }, 80);
    return [{ tools: [agent(outer, false)] }, OVER];
  },
  "a foreground subagent beside a background shell": (pace) => [
    { tools: [shell("sleep 30"), agent(asking(pace, 80), false)] },
    OVER,
  ],
} satisfies Record<string, (pace: Pace) => Script>;
type Kind = keyof typeof KINDS;

const BASIC: readonly Kind[] = ["a foreground subagent", "a background subagent", "a background shell"];
const ALL = Object.keys(KINDS) as Kind[];

/** Servers of the table `ENDS`, by their options. */
interface Servers {
  /** Behind a daemon, like most sessions: Claude Code runs in a shim. */
  readonly plain: Server;
  readonly budget: Server;
  readonly deaf: Server;
  readonly brief: Server;
  readonly silent: Server;
  readonly unattended: Server;
}

interface Setting {
  readonly servers: Servers;
  /** Home folder of `unattended`, which has a store of its own. */
  readonly unattendedHome: string;
  readonly world: World;
  /** Connects another client to `plain`. */
  client(): Promise<Server>;
}

interface StartedTurn {
  readonly sessionId: string;
  /** Client to which the end is reported. */
  readonly on: Connection;
}

interface End {
  readonly errorSubtype: string;
  readonly pace?: Pace;
  readonly kinds?: readonly Kind[];
  begin(prompt: string, scene: Setting): Promise<StartedTurn>;
}

const start = async (on: Server, world: World, prompt: string, more: object = {}): Promise<StartedTurn> => {
  const begin = { prompt, cwd: world.folder(), ...more };
  const { sessionId } = await on.call("claude_code", begin);
  return { sessionId, on };
};

/** Resolves when the session, or a subagent of the session, has asked for answer `entry` of its script. */
const waitForEntry = async ({ model }: World, sessionId: string, entry: number) =>
  model.waitForRequest(
    (request) => request.sessionId === sessionId && "entry" in request.served && request.served.entry >= entry,
  );

const ENTRY = 4;

/** A call that waits for its turn. The first log message of a query names the session. */
type Call = readonly [tool: string, args: { prompt: string; sessionId?: string; cwd?: string }];

/** Resolves with the session id once the turn of the call runs. */
async function startWaitingCall(
  { world }: Setting,
  client: Server,
  [tool, args]: Call,
  signal?: AbortSignal,
): Promise<string> {
  let hear: (id: string) => void = () => undefined;
  const first = new Promise<string>((resolve) => (hear = resolve));
  const onLog = ({ data }: { data: unknown }) => {
    if (args.sessionId === undefined) hear((JSON.parse(String(data)) as { sessionId: string }).sessionId);
  };
  stream(client, tool, { ...args }, { onLog, ...(signal && { signal }) }).catch(() => undefined);
  const sessionId = args.sessionId ?? (await first);
  await waitForEntry(world, sessionId, ENTRY);
  return sessionId;
}

async function startAndCancel(scene: Setting, call: (client: Server) => Call | Promise<Call>): Promise<StartedTurn> {
  const client = await scene.client();
  const controller = new AbortController();
  const sessionId = await startWaitingCall(scene, client, await call(client), controller.signal);
  controller.abort();
  return { sessionId, on: scene.servers.plain };
}

async function startAndKillClient(
  scene: Setting,
  call: (client: Server) => Call | Promise<Call>,
): Promise<StartedTurn> {
  const client = await scene.client();
  const sessionId = await startWaitingCall(scene, client, await call(client));
  process.kill(client.pid, "SIGKILL");
  return { sessionId, on: scene.servers.plain };
}

const query =
  (prompt: string, { world }: Setting) =>
  (): Call => ["claude_code_query", { prompt, cwd: world.folder() }];

const chat =
  (prompt: string, { world }: Setting) =>
  async (client: Server): Promise<Call> => {
    const { data } = await stream(client, "claude_session_create", { cwd: world.folder() });
    return ["claude_chat_query", { sessionId: String(data["sessionId"]), prompt }];
  };

/** Performs `action` on a session while its turn runs. */
async function startAndAct(prompt: string, { servers, world }: Setting, action: string): Promise<StartedTurn> {
  const begun = await start(servers.plain, world, prompt);
  await waitForEntry(world, begun.sessionId, ENTRY);
  await begun.on.call("claude_code_session", { action, sessionId: begun.sessionId });
  return begun;
}

/** Polls the stored log, because a poll by a client would make the session attended. */
async function waitForEnd(home: string, sessionId: string): Promise<void> {
  const types = async () => (await storedEvents(home, sessionId)).map(({ type }) => type);
  while (!(await types()).includes("turn.ended")) await sleep(200);
}

const ENDS = {
  "the budget of the prompt": {
    errorSubtype: "error_max_budget_usd",
    begin: async (prompt, { servers, world }) =>
      start(servers.plain, world, prompt, { advanced: { maxBudgetUsd: 0.15 } }),
  },
  "Claude Code's own budget": {
    errorSubtype: "error_max_budget_usd",
    kinds: ALL,
    begin: async (prompt, { servers, world }) => start(servers.budget, world, prompt),
  },
  "Claude Code's own budget, when it stops no task": {
    errorSubtype: "error_max_budget_usd",
    kinds: ALL,
    begin: async (prompt, { servers, world }) => start(servers.deaf, world, prompt),
  },
  "the time of the prompt": {
    errorSubtype: "timeout",
    begin: async (prompt, { servers, world }) => start(servers.plain, world, prompt, { advanced: { timeout: 3000 } }),
  },
  "the time limit of the operator": {
    errorSubtype: "time_limit",
    begin: async (prompt, { servers, world }) => start(servers.brief, world, prompt),
  },
  silence: {
    errorSubtype: "inactivity",
    pace: { delayMs: 5000 },
    begin: async (prompt, { servers, world }) => start(servers.silent, world, prompt),
  },
  "an interrupt": {
    errorSubtype: "interrupted",
    begin: async (prompt, scene) => startAndAct(prompt, scene, "interrupt"),
  },
  "a cancel": {
    errorSubtype: "cancelled",
    begin: async (prompt, scene) => startAndAct(prompt, scene, "cancel"),
  },
  "the close of the session": {
    errorSubtype: "interrupted",
    begin: async (prompt, scene) => startAndAct(prompt, scene, "close"),
  },
  "a denial that interrupts": {
    errorSubtype: "interrupted",
    pace: { delayMs: 300, first: { tools: [{ name: "Write", input: { file_path: "denied.txt", content: "x" } }] } },
    begin: async (prompt, { servers, world }) => {
      const begun = await start(servers.plain, world, prompt);
      const { sessionId } = begun;
      const asked = await begun.on.news(sessionId);
      const answer = { action: "respond_permission", sessionId, decision: "deny", interrupt: true };
      const { requestId } = asked.actions[0] ?? {};
      await begun.on.call("claude_code_check", { ...answer, requestId, cursor: asked.nextCursor });
      return begun;
    },
  },
  "a client that is gone": {
    errorSubtype: "interrupted",
    begin: async (prompt, scene) => {
      const client = await scene.client();
      const { sessionId } = await start(client, scene.world, prompt, { advanced: { endWithClient: true } });
      await waitForEntry(scene.world, sessionId, ENTRY);
      process.kill(client.pid, "SIGKILL");
      return { sessionId, on: scene.servers.plain };
    },
  },
  "a query that is cancelled": {
    errorSubtype: "interrupted",
    begin: async (prompt, scene) => startAndCancel(scene, query(prompt, scene)),
  },
  "a query without its client": {
    errorSubtype: "interrupted",
    begin: async (prompt, scene) => startAndKillClient(scene, query(prompt, scene)),
  },
  "a chat that is cancelled": {
    errorSubtype: "interrupted",
    begin: async (prompt, scene) => startAndCancel(scene, chat(prompt, scene)),
  },
  "a chat without its client": {
    errorSubtype: "interrupted",
    begin: async (prompt, scene) => startAndKillClient(scene, chat(prompt, scene)),
  },
  "the most turns": {
    errorSubtype: "error_max_turns",
    // Claude Code ends such a turn between two tool calls, and continues after a background subagent has ended.
    kinds: ["a background shell"],
    begin: async (prompt, { servers, world }) => start(servers.plain, world, prompt, { maxTurns: 3 }),
  },
  "the most unattended work": {
    errorSubtype: "unattended_limit",
    begin: async (prompt, { servers, unattendedHome, world }) => {
      const begun = await start(servers.unattended, world, prompt);
      await waitForEnd(unattendedHome, begun.sessionId);
      return begun;
    },
  },
} satisfies Record<string, End>;
type EndName = keyof typeof ENDS;
export const END_NAMES = Object.keys(ENDS) as EndName[];

export function kindsOf(name: EndName): readonly Kind[] {
  const { kinds = BASIC }: End = ENDS[name];
  return kinds;
}

/** Answer at the end of a turn (`told`), and all that followed. */
export interface Outcome {
  readonly told: Answer;
  readonly wanted: string;
  /** Model requests of the session after the end. */
  readonly asked: readonly { agentId: string | undefined; afterMs: number; text: string }[];
}

export async function playEnd(
  scene: Setting,
  [name, kind]: readonly [EndName, Kind],
  silenceMs: number,
): Promise<Outcome> {
  const { model } = scene.world;
  const end: End = ENDS[name];
  const script = KINDS[kind](end.pace ?? { delayMs: 300 });
  const { on, sessionId } = await end.begin(scriptTag(script), scene);
  const told = await on.end(sessionId);
  await (await fetch(model.url)).text(); // Behind requests sent before the end, which a busy machine has not read yet.
  const [at, seq] = [Date.now(), model.requests.at(-1)?.seq ?? 0];
  await sleep(silenceMs);
  const later = model.requests.filter((request) => request.sessionId === sessionId && request.seq > seq);
  const asked = later.map(({ agentId, lastUserText, time }) => {
    return { agentId, afterMs: time - at, text: lastUserText.slice(0, 200) };
  });
  await on.call("claude_code_session", { action: "close", sessionId });
  return { told, wanted: end.errorSubtype, asked };
}
