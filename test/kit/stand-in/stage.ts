import { setTimeout as sleep } from "node:timers/promises";

import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer } from "../clients/connection.ts";
import type { Server } from "../servers/stdio-server.ts";
import type { World } from "../world.ts";

export type Script = Parameters<typeof scriptTag>[0];

/** A server for the scenarios of a session, in a world with the real Claude Code or the stand-in. */
export class Stage {
  readonly world: World;
  readonly server: Server;
  readonly cwd: string;
  readonly elsewhere: string;
  readonly #options: object;
  #sessionId = "";
  /** State at the start of the scenario: end of the log, and number of requests to the model. */
  #before = { cursor: 1, requests: 0 };

  constructor(world: World, server: Server, options: object) {
    this.world = world;
    this.server = server;
    this.#options = options;
    this.cwd = world.folder();
    this.elsewhere = world.folder();
  }

  get sessionId(): string {
    return this.#sessionId;
  }

  async play(scenario: (stage: Stage) => Promise<unknown>): Promise<unknown> {
    if (this.#sessionId !== "") {
      const { nextCursor } = await this.log();
      this.#before = { cursor: nextCursor, requests: this.#requests() };
    }
    return scenario(this);
  }

  /** Sends the next prompt; the first starts the session. Waits for the end of the turn or a request. */
  async prompt(script: Script, options: object = {}): Promise<Answer> {
    const call = { prompt: `Do it. ${scriptTag(script)}`, waitMs: 40_000, ...options };
    if (this.#sessionId !== "") return this.server.call("claude_code_reply", { sessionId: this.#sessionId, ...call });
    const answer = await this.server.call("claude_code", { cwd: this.cwd, ...this.#options, ...call });
    this.#sessionId = answer.sessionId;
    return answer;
  }

  /** Answers open requests in order until the turn has ended; the last answer is repeated. */
  async answer(answers: readonly object[]): Promise<void> {
    const left = [...answers];
    for (let { cursor } = this.#before; ;) {
      const { actions, nextCursor, status } = await this.server.news(this.#sessionId, cursor);
      for (const { requestId, type } of actions) {
        const given = left.length > 1 ? left.shift() : left[0];
        const action = type === "question" ? "answer_question" : "respond_permission";
        await this.check({ action, requestId, until: "news", waitMs: 0, ...given });
      }
      if (actions.length === 0 && status !== "running") return;
      cursor = nextCursor;
    }
  }

  async check(args: object): Promise<Answer> {
    return this.server.call("claude_code_check", { action: "poll", sessionId: this.#sessionId, ...args });
  }

  /** All events of the session so far. */
  async log(): Promise<Answer> {
    return this.check({ waitMs: 0, responseMode: "full", maxBytes: 1_000_000 });
  }

  async act(action: string, args: object = {}): Promise<Answer> {
    return this.server.call("claude_code_session", { action, sessionId: this.#sessionId, ...args });
  }

  /** Waits until this scenario has logged `text`, `times` times. */
  async told(text: string, times = 1): Promise<void> {
    for (let { cursor } = this.#before, seen = 0; ;) {
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

  /** Claude Code processes of this session. */
  processes(): { pid: number }[] {
    return this.world.processes().filter(({ command }) => command.includes(this.#sessionId));
  }

  /** Returns the name of a gate for this scenario alone. */
  gate(name: string): string {
    return `${name} of ${this.cwd}`;
  }

  /**
   * Returns the texts "One." to "Four." in the model request whose script is only `text`; scripts of other sessions are longer.
   */
  conversation(text: string): string[] {
    const script = `[{"text":"${text}"}]`;
    const asked = this.world.model.requests.findLast(({ lastUserText }) => lastUserText.includes(script));
    return [...(asked?.told ?? "").matchAll(/"text":"(?:One|Two|Three|Four)\./g)].map(([said]) => said);
  }

  /** Waits until this scenario makes a request to the model. */
  async requested(): Promise<void> {
    await this.world.model.waitForRequest(() => this.#requests() > this.#before.requests);
  }

  #requests(): number {
    return this.world.model.requests.filter(({ sessionId }) => sessionId === this.#sessionId).length;
  }
}
