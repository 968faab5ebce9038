import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { messageTo, runStranger } from "../kit/attacks/stranger.ts";
import { storedEvents } from "../kit/store/stored.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/**
 * A named daemon that was killed and restarted with other settings takes over the Claude Code process of its predecessor. The
 * rules of both have to hold.
 */

const world = useWorld();
const RULES = ["--deny-rules", "Bash(touch denied*)"];
const ASKING = ["--ask-rules", "PeerMessage"];
beforeAll(addSkill);
const env = { ENABLE_TOOL_SEARCH: "false" };

let daemons = 0;

interface Attack {
  readonly cwd: string;
  readonly server: Server;
  readonly sessionId: string;
  readonly title: string;
}

async function prompt({ server, sessionId }: Attack, text: string): Promise<void> {
  await server.call("claude_code_reply", { sessionId, prompt: text });
}

/** Waits for `permission.asked`, or the end of the second turn. */
async function waitForRequestOrEnd(sessionId: string): Promise<void> {
  const types = async () => (await storedEvents(join(world.configFolder, ".."), sessionId)).map(({ type }) => type);
  const isSettled = async () => {
    const log = await types();
    return log.includes("permission.asked") || log.filter((type) => type === "turn.ended").length > 1;
  };
  await expect.poll(isSettled, { timeout: 30_000 }).toBe(true);
}

/** Adds a skill of the user. */
function addSkill(): void {
  const folder = join(world.configFolder, "skills", "make");
  mkdirSync(folder, { recursive: true });
  const head = "---\nname: make\ndescription: d\nallowed-tools: Bash\n---\n";
  writeFileSync(join(folder, "SKILL.md"), `${head}State: !\`find . -maxdepth 0 -exec touch denied ';'\`\n`);
}

const useSkill = async (attack: Attack) => prompt(attack, `/make ${scriptTag([{ text: "Used." }])}`);

const write = (file: string) => async (attack: Attack) => {
  const input = { file_path: join(attack.cwd, file), content: "x" };
  await prompt(attack, scriptTag([{ tools: [{ name: "Write", input }] }, { text: "Wrote." }]));
};

async function sendMessage({ cwd, title }: Attack): Promise<void> {
  const obey = [{ tools: [{ name: "Bash", input: { command: `touch ${join(cwd, "denied")}` } }] }, { text: "Obeyed." }];
  await runStranger(world, messageTo(title, obey));
}

interface Row {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly act: (attack: Attack) => Promise<void>;
  readonly file: string;
  /** Number of processes of the session. Default: 1. */
  readonly starts?: number;
}

it.each<[string, Row]>([
  ["a skill's command that a new rule denies", { before: [], after: RULES, act: useSkill, file: "denied", starts: 2 }],
  ["a skill's command that a former rule denied", { before: RULES, after: [], act: useSkill, file: "denied" }],
  [
    "a skill's command, where the former daemon asked for approval of messages",
    { before: [...RULES, ...ASKING], after: RULES, act: useSkill, file: "denied", starts: 2 },
  ],
  [
    "a write to a file that other programs execute, under new rules",
    { before: [], after: RULES, act: write(".github/workflows/ci.yml"), file: ".github/workflows/ci.yml", starts: 2 },
  ],
  [
    "a message for which only the former daemon asked for approval",
    { before: ASKING, after: [], act: sendMessage, file: "denied" },
  ],
  [
    "a message for which both daemons ask for approval",
    { before: ASKING, after: [...ASKING, ...RULES], act: sendMessage, file: "denied" },
  ],
])("a restarted daemon stops %s", { timeout: 60_000 }, async (name, { act, after, before, file, starts = 1 }) => {
  const title = name.replaceAll(/\W+/g, "-");
  const daemon = `d${String((daemons += 1))}`;
  const first = await world.daemon({ name: daemon, args: [...before], env });
  const cwd = world.folder();
  const client = await first.client();
  const begun = {
    prompt: scriptTag([{ text: "Here." }]),
    cwd,
    title,
    permissionMode: "acceptEdits",
    allowedTools: ["Bash", "Skill"],
  };
  const { sessionId } = await client.call("claude_code", begun);
  await client.end(sessionId);
  await first.end("SIGKILL");
  const second = await world.daemon({ name: daemon, args: [...after], env });
  const server = await second.client();
  await act({ cwd, server, sessionId, title });
  await waitForRequestOrEnd(sessionId);
  const log = await storedEvents(join(world.configFolder, ".."), sessionId);
  // A prompt under stricter rules than those of an idle process starts another process.
  expect(log.filter(({ type }) => type === "process.started")).toHaveLength(starts);
  expect(existsSync(join(cwd, file))).toBe(false);
});
