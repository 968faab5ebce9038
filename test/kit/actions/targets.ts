import { signIn, type ConsoleClient } from "../clients/console-client.ts";
import { overHttp } from "../clients/tasks-client.ts";
import { toolCalls, writeCall } from "../people/fake-user.ts";
import type { HttpServer } from "../servers/http-server.ts";
import { PROMPT, type Target, type Way } from "./ways.ts";

export const NOWHERE: Target = { sessionId: "s", cwd: "/", requestId: "r", taskId: "t", promptId: "p" };

interface TargetsOptions {
  readonly server: HttpServer;
  /** Token of the user to whom the sessions belong. */
  readonly token: string;
  readonly folder: () => string;
}

/** Sessions of a server on which actions are tried. */
export class Targets {
  readonly #options: TargetsOptions;
  readonly #page: ConsoleClient;
  /** Target of all ways without `on`: their actions leave a session usable. */
  #shared: Promise<Target> | undefined;
  /** Id of a session with nine requests, one after another. */
  #asking: Promise<string> | undefined;

  private constructor(options: TargetsOptions, page: ConsoleClient) {
    this.#options = options;
    this.#page = page;
  }

  static async on(options: TargetsOptions): Promise<Targets> {
    return new Targets(options, await signIn(options.server, options.token));
  }

  async for({ on }: Pick<Way, "on">): Promise<Target> {
    const { folder, server, token } = this.#options;
    if (on === undefined) {
      this.#shared ??= this.for({ on: "own" });
      return this.#shared;
    }
    const cwd = folder();
    if (on === "asking") {
      const calls = Array.from({ length: 9 }, (_, n) => writeCall(`${cwd}/${String(n)}`));
      this.#asking ??= this.#page.start(toolCalls(calls), cwd);
      const sessionId = await this.#asking;
      return { ...NOWHERE, sessionId, cwd, requestId: (await this.#page.asked(sessionId)).requestId };
    }
    if (on === "task") {
      const { task } = await overHttp(server, token).begin("claude_code", { prompt: PROMPT, cwd });
      return { ...NOWHERE, cwd, taskId: task.taskId };
    }
    const sessionId = await this.#page.start(PROMPT, cwd);
    await this.#page.end(sessionId);
    const { events } = await this.#page.get<{ events: { type: string; data: { promptId?: string } }[] }>(
      `sessions/${sessionId}/events?from=1`,
    );
    const { promptId = "" } = events.find(({ type }) => type === "prompt.queued")?.data ?? {};
    return { ...NOWHERE, sessionId, cwd, promptId };
  }
}
