import { execFileSync, spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Webhooks of the Events extension as the AI SDK receives them, a client that others wrote, in a process of its own. */

const AI_SDK = "@ai-sdk/mcp@2.0.99";
/** The AI SDK needs Node 22. Used if the tests run on an older one. */
const NODE = `node-linux-${process.arch}@22.23.5`;

const Line = z.looseObject({
  did: z.string().optional(),
  error: z.string().optional(),
  result: z.looseObject({ id: z.string().optional(), cursor: z.string().optional() }).optional(),
  event: z
    .looseObject({ eventId: z.string(), cursor: z.string(), data: z.looseObject({ sessionId: z.string() }) })
    .optional(),
  ready: z.boolean().optional(),
});
type Line = z.infer<typeof Line>;

/** Installs the packages once for all runs on this machine. Returns their folder. */
function install(): string {
  const folder = join(tmpdir(), `ccm-ai-sdk-${AI_SDK.split("@").at(-1) ?? ""}-${process.arch}`);
  if (existsSync(folder)) return folder;
  const fresh = `${folder}.${String(process.pid)}`;
  mkdirSync(fresh);
  writeFileSync(join(fresh, "package.json"), "{}");
  const wanted = isOldNode() ? [AI_SDK, NODE, "zod@4"] : [AI_SDK, "zod@4"];
  execFileSync("npm", ["install", "--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts", ...wanted], {
    cwd: fresh,
  });
  try {
    renameSync(fresh, folder);
  } catch {
    // Another run was faster.
    rmSync(fresh, { recursive: true });
  }
  return folder;
}

function isOldNode(): boolean {
  return Number(process.versions.node.split(".")[0]) < 22;
}

class AiSdk {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly lines: Line[] = [];
  #stderr = "";

  constructor(packages: string, url: string, token: string) {
    const own = join(packages, "node_modules", `node-linux-${process.arch}`, "bin/node");
    const program = resolve("test/kit/clients/ai-sdk-subscriber.mjs");
    this.#child = spawn(isOldNode() ? own : process.execPath, [program, packages, url, token]);
    this.#child.stderr.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString()));
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.lines.push(Line.parse(JSON.parse(line))));
  }

  async #find(fits: (line: Line) => boolean): Promise<Line> {
    await vi.waitUntil(() => this.lines.some(fits) || this.#stderr !== "", { timeout: 40_000 });
    if (this.#stderr !== "") throw new Error(this.#stderr);
    return this.lines.find(fits)!;
  }

  async ready(): Promise<void> {
    await this.#find(({ ready }) => ready === true);
  }

  /** Resolves with the result of an action. Call each action once. */
  async act(name: string, given: object = {}): Promise<NonNullable<Line["result"]>> {
    this.#child.stdin.write(`${JSON.stringify({ do: name, ...given })}\n`);
    const { error, result } = await this.#find(({ did }) => did === name);
    if (!result) throw new Error(error);
    return result;
  }

  async eventOf(sessionId: string): Promise<NonNullable<Line["event"]>> {
    return (await this.#find(({ event }) => event?.data.sessionId === sessionId)).event!;
  }

  end(): void {
    this.#child.kill();
  }
}

const world = useWorld({ agent: "stand-in" });
const { args: PRINCIPALS, tokens } = namedUsers({ ada: {} });

let packages: string;
beforeAll(() => void (packages = install()), 300_000);
let sdk: AiSdk | undefined;
afterEach(() => sdk?.end());

describe.runIf(process.platform === "linux")("webhooks and the AI SDK", () => {
  it("the AI SDK subscribes, consents, receives events under their ids, replaces its secret, and unsubscribes", async () => {
    const store = join(world.folder(), "store.db");
    const args = [...PRINCIPALS, "--event-webhooks", "any", "--store", store];
    const http = await world.http({ args, env: constants({ notifyRetryMs: 50 }) });
    const ada = await http.connect("modern", tokens.ada);
    const runTurn = async () => {
      const prompt = scriptTag([{ text: "Done." }]);
      return (await ada.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 })).sessionId;
    };
    sdk = new AiSdk(packages, http.url, tokens.ada);
    await sdk.ready();
    const { id } = await sdk.act("subscribe");
    expect(id).toMatch(/^sub_/);
    const first = await runTurn();
    const { cursor, eventId } = await sdk.eventOf(first);
    expect(eventId.startsWith(`${first}_`)).toBe(true);
    await expect(sdk.act("rotate", { id })).resolves.toMatchObject({ id });
    await sdk.eventOf(await runTurn());
    const renewed = await sdk.act("refresh", { id });
    expect([renewed.id, renewed.cursor === cursor]).toEqual([id, false]);
    await sdk.act("unsubscribe", { id });
    await runTurn();
    // Each event came once: at its repetitions, the AI SDK would have told it again.
    expect(sdk.lines.filter(({ event }) => event)).toHaveLength(2);
    expect(sdk.lines.filter(({ error }) => error)).toEqual([]);
  });
});
