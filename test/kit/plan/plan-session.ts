import { randomUUID } from "node:crypto";

import { z } from "zod";

import { EnvironmentRecords } from "../../../src/claude/environment-records.ts";
import type { ControlRequest } from "../../../src/domain/control.ts";
import type { SessionOptions } from "../../../src/domain/options.ts";
import { type Script, scriptTag } from "../../../src/demo/model/script.ts";
import type { AgentProcess, AgentSignal, AgentStart } from "../../../src/engine/ports.ts";
import { placementOf, runtimeFor } from "../sessions/confined-runtime.ts";
import { STAND_IN, type AgentKind, type World } from "../world.ts";

const Entry = z.object({ type: z.string(), isApiErrorMessage: z.boolean().optional() });

type Signal<T extends AgentSignal["type"]> = Extract<AgentSignal, { type: T }>;

/** A session in the server's runtime, without an engine: the test itself sends prompts and reads signals. */
export class PlanSession {
  readonly id = randomUUID();
  readonly signals: AgentSignal[] = [];
  readonly #world: World;
  readonly #agent: AgentKind;
  readonly #options: SessionOptions;
  readonly #waiting = new Set<() => void>();
  #process: AgentProcess | undefined;
  #starts = 0;

  constructor(world: World, agent: AgentKind, more: Partial<SessionOptions> = {}) {
    this.#world = world;
    this.#agent = agent;
    this.#options = { cwd: world.folder(), allowedTools: ["Bash(echo:*)"], model: "sonnet", ...more };
  }

  /** Starts a process; the second and later ones resume the session. */
  begin(more: Partial<AgentStart> = {}): void {
    const first = this.#starts === 0;
    const processTag = `${this.id}:${String((this.#starts += 1))}`;
    const own = { PATH: process.env["PATH"], ...this.#world.environment };
    const path = this.#agent === "real" ? undefined : STAND_IN.CLAUDE_CODE_MCP_CLAUDE_PATH;
    const runtime = runtimeFor(
      {},
      {
        environments: new EnvironmentRecords(Buffer.alloc(32), own),
        claude: { locate: async () => Promise.resolve({ path, version: undefined, warning: undefined }) },
      },
    );
    const agent = runtime.start({
      ...placementOf(this.#options),
      sessionId: this.id,
      transcriptId: this.id,
      first,
      hasSpoken: false,
      processTag,
      epoch: 1,
      admitted: Promise.resolve(),
      watchesCost: false,
      hasFreeSlot: async () => Promise.resolve(false),
      onPartial: () => undefined,
      onSignal: (signal) => {
        if (signal.type === "started") agent.acknowledge(0);
        this.signals.push(signal);
        for (const wake of this.#waiting) wake();
      },
      ...more,
    });
    this.#process = agent;
  }

  /** Sends a prompt; resolves with the signals until Claude Code is idle. */
  async prompt(text: string, script: Script): Promise<AgentSignal[]> {
    const id = randomUUID();
    return this.#until("idle", (agent) => agent.push({ id, text: `${text} ${scriptTag(script)}`, attachments: [] }));
  }

  /** Sends the refused request again. */
  async sendAgain(id: string = randomUUID()): Promise<AgentSignal[]> {
    return this.#until("idle", (agent) => agent.sendAgain(id));
  }

  async control(request: ControlRequest): Promise<unknown> {
    return this.#process?.control(request);
  }

  /** Ends the process; resolves once it is gone. */
  async end(how: "kill" | "stop"): Promise<void> {
    if (this.signals.at(-1)?.type !== "exited") await this.#until("exited", (agent) => agent[how]());
  }

  async exited(): Promise<Signal<"exited">> {
    const [exit] = of("exited", await this.seen(({ type }) => type === "exited", 0));
    if (!exit) throw new Error("no exit");
    return exit;
  }

  /** Messages in the transcript, without those of Claude Code itself: types in order. */
  transcript(): string[] {
    const lines = this.#world.transcript(this.id).trim().split("\n");
    const entries = lines.map((line) => Entry.parse(JSON.parse(line)));
    return entries.flatMap(({ isApiErrorMessage, type }) => {
      if (type !== "user" && type !== "assistant") return [];
      return [isApiErrorMessage ? "refusal" : type];
    });
  }

  get requests() {
    return this.#world.model.requests.filter(({ sessionId }) => sessionId === this.id);
  }

  /** Resolves with the signals from `from` on, up to the first that `matches`. */
  async seen(matches: (signal: AgentSignal) => boolean, from = this.signals.length): Promise<AgentSignal[]> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const news = this.signals.slice(from);
        const at = news.findIndex((signal) => matches(signal) || signal.type === "exited");
        const found = news[at];
        if (!found) return;
        this.#waiting.delete(look);
        if (matches(found)) resolve(news.slice(0, at + 1));
        else reject(new Error(`The process has ended: ${JSON.stringify(found)}`));
      };
      this.#waiting.add(look);
      look();
    });
  }

  async #until(type: AgentSignal["type"], act: (agent: AgentProcess) => void): Promise<AgentSignal[]> {
    if (!this.#process) throw new Error("begin() first");
    const seen = this.seen((signal) => signal.type === type);
    act(this.#process);
    return seen;
  }
}

/** Returns the signals of a type. */
export function of<T extends AgentSignal["type"]>(type: T, signals: readonly AgentSignal[]): Signal<T>[] {
  return signals.filter((signal): signal is Signal<T> => signal.type === type);
}

export function resultOf(signals: readonly AgentSignal[]) {
  const result = of("result", signals).at(-1)?.result;
  if (!result) throw new Error("no result");
  return result;
}
