import { once } from "node:events";
import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { TurnEnded } from "../../src/domain/event.ts";
import { LOCAL_CALLER } from "../../src/domain/principal.ts";
import { type Script, scriptTag } from "../../src/demo/model/script.ts";
import { systemClock } from "../../src/app/system-clock.ts";
import { claudeNode, type ClaudeNode } from "../kit/sessions/claude-node.ts";
import { MemoryTranscripts, sharedBy } from "../kit/store/machines.ts";
import { memoryStore } from "../kit/store/memory.ts";
import { withReplacements } from "../kit/step/two-nodes.ts";
import { useWorld } from "../kit/world.ts";

/** Conversations that Claude Code has at one node, and goes on with at another in the configuration folder there. */

const world = useWorld();
const transcripts = new MemoryTranscripts();
const caller = { ...LOCAL_CALLER, principal: "ann" };
const store = memoryStore({ tick: () => systemClock.tick() });
let one: ClaudeNode;
let two: ClaudeNode;
const nodes: ClaudeNode[] = [];
/** Bodies of requests to the model, which has no record of results and of its own words. */
const requests: string[] = [];
const recorder = createServer((request, response) => void forward(request, response));
beforeAll(async () => {
  await once(recorder.listen(0, "127.0.0.1"), "listening");
  [one, two] = [nodeOf("one"), nodeOf("two")];
});
afterAll(async () => {
  await Promise.all(nodes.map(async (node) => node.close()));
  recorder.close();
});

async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readText(request);
  requests.push(body);
  const { method = "POST", url = "/" } = request;
  const answer = httpRequest(`${world.model.url}${url}`, { method, headers: request.headers });
  answer.on("response", (from) => {
    response.writeHead(from.statusCode ?? 500, from.headers);
    from.pipe(response);
  });
  answer.end(body);
}

function nodeOf(name: string): ClaudeNode {
  const backend = store.connect(name);
  const node = claudeNode(
    world,
    withReplacements(sharedBy({ name, place: { volume: "v" }, transcripts })(backend), backend),
    { ANTHROPIC_BASE_URL: `http://127.0.0.1:${String((recorder.address() as AddressInfo).port)}` },
  );
  nodes.push(node);
  return node;
}

const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const say = (text: string, script: Script = []) => `${text}? ${scriptTag([...script, { text: `Said ${text}.` }])}`;

/** Resolves with the `nth` end of a turn. */
async function ended({ backend }: ClaudeNode, id: string, nth: number): Promise<TurnEnded> {
  let count = 0;
  for await (const event of backend.log.tail(id, 1, new AbortController().signal))
    if (event.type === "turn.ended" && ++count === nth) return event.data;
  throw new Error("the log has ended");
}

async function isSealed({ backend }: ClaudeNode, id: string): Promise<void> {
  const eventId = (await backend.rows.get(id))?.state.lastTurnEventId;
  await vi.waitUntil(() => transcripts.manifests.get(id)?.eventId === eventId, 15_000);
}

/** Returns the last request of a prompt. */
const toldWith = (prompt: string) => requests.findLast((body) => body.includes(`${prompt}?`)) ?? "";

describe("a session in a shared folder", () => {
  let id: string;
  let cwd: string;
  let first: TurnEnded;
  beforeAll(async () => {
    cwd = realpathSync(world.folder());
    writeFileSync(join(cwd, "a.txt"), "before\n");
    writeFileSync(join(two.configFolder, "CLAUDE.md"), "Marker of node two.");
    const edit = { file_path: join(cwd, "a.txt"), old_string: "before", new_string: "after" };
    const work = [
      bash("echo the-tool-$((40 + 2))"),
      { tools: [{ name: "Read", input: { file_path: join(cwd, "a.txt") } }] },
      { tools: [{ name: "Edit", input: edit }] },
    ];
    const options = {
      cwd,
      allowedTools: ["Bash(echo:*)", "Edit", "Read"],
      enableFileCheckpointing: true,
    };
    ({ sessionId: id } = await one.engine.open(caller, { options, prompt: { text: say("one", work) } }));
    first = await ended(one, id, 1);
    await isSealed(one, id);
  });

  it("the transcript is stored in whole at the end of a turn, without a wait", () => {
    expect(first).toMatchObject({ outcome: "done" });
    const stored = transcripts.files.get(`${id}/${id}.jsonl`)?.toString() ?? "";
    expect(stored).toContain("Said one.");
    expect(stored.endsWith("\n")).toBe(true);
    expect(one.complaints).toEqual([]);
  });

  it("another node goes on with it: tool results, its own CLAUDE.md, the checkpoints and the cost", async () => {
    await one.close();
    await two.engine.prompt("ann", id, { text: say("two") });
    const second = await ended(two, id, 2);
    expect(second).toMatchObject({ outcome: "done", isError: false });
    expect(second.warnings).toBeUndefined();
    const told = toldWith("two");
    for (const text of ["one?", "the-tool-42", "Said one.", "Marker of node two."]) expect(told).toContain(text);
    expect(second.costUsd).toBeGreaterThan(0);
    expect(second.costUsd).toBeLessThan(first.costUsd);
    expect(second.sessionCostUsd).toBeCloseTo(first.costUsd + second.costUsd, 6);
    const { state } = (await two.backend.rows.get(id))!;
    expect(state.identity).toMatchObject({ node: "two", configFolder: two.configFolder });
    const [prompt] = await two.backend.log.read(id, 1, 1);
    const promptId = prompt?.type === "prompt.queued" ? prompt.data.promptId : "";
    await two.engine.control(caller, id, { do: "rewind", promptId, dryRun: false }, "caller");
    expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("before\n");
    await isSealed(two, id);
  });

  it("a save that was cut leaves the conversation before, and the next answer says what is missing", async () => {
    let writes = 0;
    transcripts.before = (what) => {
      writes += 1;
      if (what === "seal" || writes > 1) throw new Error("the database is gone");
    };
    await two.engine.prompt("ann", id, { text: say("three", [bash("echo lost")]) });
    await ended(two, id, 3);
    await two.close();
    expect(writes).toBeGreaterThan(1);
    transcripts.before = () => undefined;
    const three = nodeOf("three");
    await three.engine.prompt("ann", id, { text: say("four") });
    const { outcome, warnings = [] } = await ended(three, id, 4);
    expect(outcome).toBe("done");
    expect(warnings).toEqual([expect.stringMatching(/from the end of turn 2: turn 3 is missing/)]);
    expect(toldWith("four")).toContain("Said two.");
    expect(toldWith("four")).not.toContain("three?");
    await isSealed(three, id);
    await three.close();
  });
});
