import { setTimeout as sleep } from "node:timers/promises";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Answer } from "../support/connection.ts";
import type { Server } from "../support/stdio-server.ts";
import type { World } from "../support/world.ts";

export type Script = Parameters<typeof scriptTag>[0];

/** What a scenario is played on: one server, in a world whose Claude Code is the real one or the stand-in. */
export class Stage {
  readonly world: World;
  readonly server: Server;
  readonly cwd: string;
  readonly elsewhere: string;
  #sessionId = "";

  constructor(world: World, server: Server) {
    this.world = world;
    this.server = server;
    this.cwd = world.folder();
    this.elsewhere = world.folder();
  }

  get sessionId(): string {
    return this.#sessionId;
  }

  /** Starts the session, and waits for the end of its turn or a request. */
  async start(script: Script, options: object = {}): Promise<Answer> {
    const prompt = `Begin. ${scriptTag(script)}`;
    const answer = await this.server.call("claude_code", { prompt, cwd: this.cwd, waitMs: 40_000, ...options });
    this.#sessionId = answer.sessionId;
    return answer;
  }

  async reply(script: Script, options: object = {}): Promise<Answer> {
    const prompt = `Go on. ${scriptTag(script)}`;
    return this.server.call("claude_code_reply", { sessionId: this.#sessionId, prompt, waitMs: 40_000, ...options });
  }

  /** Answers the requests that are open, in order, until the turn has ended; the last answer stands for all that follow. */
  async answer(answers: readonly object[]): Promise<void> {
    for (let at = 0; ; at += 1) {
      const { actions, status } = await this.server.news(this.#sessionId);
      const [action] = actions;
      if (!action) {
        if (status !== "running") return;
        continue;
      }
      const given = answers[Math.min(at, answers.length - 1)];
      const verb = action.type === "question" ? "answer_question" : "respond_permission";
      await this.check({ action: verb, requestId: action.requestId, until: "news", waitMs: 0, ...given });
    }
  }

  async check(args: object): Promise<Answer> {
    return this.server.call("claude_code_check", { action: "poll", sessionId: this.#sessionId, ...args });
  }

  async act(action: string, args: object = {}): Promise<Answer> {
    return this.server.call("claude_code_session", { action, sessionId: this.#sessionId, ...args });
  }

  /** Waits until the log holds the text. */
  async told(text: string, times = 1): Promise<void> {
    for (let cursor = 1, seen = 0; ;) {
      const news = { cursor, waitMs: 20_000, until: "event", responseMode: "full", maxBytes: 262_144 };
      const { events, nextCursor } = await this.check(news);
      seen += events.filter(({ data }) => JSON.stringify(data).includes(text)).length;
      if (seen >= times) return;
      if (nextCursor === cursor) throw new Error(`never told: ${text}`);
      cursor = nextCursor;
    }
  }

  async isWithoutProcess(): Promise<void> {
    for (let left = true; left; await sleep(20)) {
      const { sessions } = await this.act("get");
      left = sessions[0]?.["processLive"] !== false || this.processes().length > 0;
    }
  }

  /** Claude Code, as this session has it. */
  processes(): { pid: number }[] {
    return this.world.processes().filter(({ command }) => command.includes(this.#sessionId));
  }

  /** A gate of this scenario alone. */
  gate(name: string): string {
    return `${name} of ${this.cwd}`;
  }

  /** Who had said what when the model was asked for this text. */
  conversation(text: string): string[] {
    const asked = this.world.model.requests.findLast(({ lastUserText }) => lastUserText.includes(`"text":"${text}"`));
    return [...(asked?.told ?? "").matchAll(/"text":"(?:One|Two|Three|Four)\./g)].map(([said]) => said);
  }

  async requested(count = 1): Promise<void> {
    const isMine = () => this.world.model.requests.filter(({ sessionId }) => sessionId === this.#sessionId);
    await this.world.model.waitForRequest(() => isMine().length >= count);
  }
}
