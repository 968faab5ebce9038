import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../../src/demo/model/script.ts";
import { toolCalls, writeCall } from "../people/fake-user.ts";
import { half } from "../runner/amount.ts";
import { useWorld } from "../world.ts";
import { callerHome, promptWith, startTerminal, type CallerHome, type RunningClaude } from "./calling-claude.ts";
import { WITHOUT_TERMINAL } from "./terminal.ts";

/** The terminal of a real Claude Code: its model starts work with one call and is woken with the result. */

/** Time limit of a test, ms: two starts of Claude Code, on a busy machine. */
const LIMIT_MS = 120_000;
/** Tools that prompt a session, besides those that open one. */
const PROMPTING = ["claude_code_reply", "claude_chat_query"];
const TOOLS = ["claude_code", "claude_code_query", "claude_direct_query", ...PROMPTING];

/** Defines the tests for the Claude Code in the file that `claude` returns. */
export function describeWakes(claude: () => string): void {
  const world = useWorld({ agent: "stand-in", daemon: "auto" });
  const args = ["--toolsets", "agent,query,chat"];
  const open: (() => Promise<unknown>)[] = [];
  let known = "";
  beforeAll(async () => {
    const server = await world.server({ args });
    const first = { prompt: scriptTag([{ text: "First." }]), cwd: world.folder(), waitMs: 30_000 };
    known = (await server.call("claude_code", first)).sessionId;
    await server.close();
  });
  afterEach(async () => {
    for (const close of open.splice(0).toReversed()) await close();
  });

  async function newHome(): Promise<CallerHome> {
    const home = await callerHome(world, { args });
    open.push(async () => home.close());
    return home;
  }

  function terminalOf(home: CallerHome, ...words: string[]): RunningClaude {
    const terminal = startTerminal(home, words, claude());
    open.push(async () => terminal.kill());
    return terminal;
  }

  const callOf = (tool: string, script: Parameters<typeof scriptTag>[0]) => {
    const place = PROMPTING.includes(tool) ? { sessionId: known } : { cwd: world.folder() };
    return { tool, input: { prompt: scriptTag(script), ...place } };
  };
  const gated = (tool: string, gate: string) => callOf(tool, [{ text: `Result of ${gate}.`, gateBefore: gate }]);
  const begins = async (gate: string) => world.model.waitForRequest(({ lastUserText }) => lastUserText.includes(gate));

  /** Chooses "Allow once" and accepts; again while a busy Claude Code loses keys, until `answered` resolves. */
  async function allow(terminal: RunningClaude, answered: Promise<unknown>): Promise<void> {
    const pause = async (ms: number) => new Promise((resolve) => setTimeout(resolve, ms, "later"));
    for (let tries = 0; tries < 8; tries += 1) {
      for (const key of ["\u001B[C", "\r", "\r"]) {
        await pause(500);
        terminal.type(key);
      }
      if ((await Promise.race([answered, pause(5_000)])) !== "later") return;
    }
    throw new Error(`the form takes no answer: ${terminal.output().slice(-4_000)}`);
  }

  /** Expects `count` requests in all: a request too many would follow at once. */
  async function expectNoPoll({ requests }: CallerHome, count: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(requests()).toHaveLength(count);
  }

  describe.skipIf(WITHOUT_TERMINAL)("the terminal of Claude Code", () => {
    it.each(half(TOOLS))(
      "`%s` is one call: the model is woken with the result, also in a Claude Code that resumes a killed one",
      async (tool) => {
        const home = await newHome();
        const gate = `awake ${tool}`;
        terminalOf(home, "--", promptWith(gated(tool, gate)));
        await home.asks(1);
        world.model.release(gate);
        expect((await home.asks(2)).lastUserText).toContain(`Result of ${gate}.`);
        await expectNoPoll(home, 3);

        const later = await newHome();
        const second = `killed ${tool}`;
        const first = terminalOf(later, "--", promptWith(gated(tool, second)));
        await Promise.all([later.keeps("Begun."), begins(second)]);
        await first.shows(/1MCPtaskstillrunning/);
        await first.kill();
        world.model.release(second);
        terminalOf(later, "--continue");
        expect((await later.asks(2)).lastUserText).toContain(`Result of ${second}.`);
        await expectNoPoll(later, 3);
      },
      LIMIT_MS,
    );

    it(
      "two tasks at once, one over before the client asks and one failing later, wake the model once each at most",
      async () => {
        const home = await newHome();
        const quick = callOf("claude_code", [{ text: "Quick." }]);
        const failing = callOf("claude_code_query", [
          { text: "Tries.", tools: [{ name: "Read", input: { file_path: "x" } }] },
          { gateBefore: "failing", error: { status: 400, message: "No such thing.", times: 9 } },
        ]);
        terminalOf(home, "--", promptWith(quick, failing));
        await home.model.waitForRequest(({ lastUserText }) => /<result>[^]*Quick\./.test(lastUserText));
        world.model.release("failing");
        await home.model.waitForRequest(({ lastUserText }) => lastUserText.includes("No such thing."));
        await expectNoPoll(home, 4);
      },
      LIMIT_MS,
    );

    it.each(half(TOOLS))(
      "a request of `%s` is a form, also after kill and resume, and the answer leads to the result",
      async (tool) => {
        const home = await newHome();
        const file = join(world.folder(), "asked");
        const call = { ...callOf(tool, []), tool };
        const mode = tool === "claude_code_query" ? { permissionMode: "default" } : {};
        const input = { ...call.input, ...mode, prompt: toolCalls([writeCall(file)]) };
        const first = terminalOf(home, "--", promptWith({ tool, input }));
        await Promise.all([home.keeps("Begun."), first.shows(/requestsyourinput/)]);
        await first.kill();
        const again = terminalOf(home, "--continue");
        await again.shows(/requestsyourinput/);
        const answered = home.asks(2);
        await allow(again, answered);
        expect((await answered).lastUserText).toContain("Over.");
        expect(existsSync(file)).toBe(true);
        await expectNoPoll(home, 3);
      },
      LIMIT_MS,
    );
  });
}
