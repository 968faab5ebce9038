import {
  query,
  type ElicitationRequest,
  type ElicitationResult,
  type HookCallback,
  type HookJSONOutput,
  type Options,
  type PermissionResult,
  type Query,
  type SDKMessage,
  type SDKUserMessage,
} from "@anthropic-ai/claude-agent-sdk";
import { randomUUID, type UUID } from "node:crypto";

import type { JsonObject } from "../../../src/domain/json.ts";
import { Changes } from "./changes.ts";
import type { KeptClaude, LineFilter } from "./kept-claude.ts";

interface Asked {
  readonly toolName: string;
  readonly toolUseID: string;
  readonly requestId: string;
  readonly agentID: string | undefined;
  readonly signal: AbortSignal;
}

export type Start = (params: { prompt: AsyncIterable<SDKUserMessage>; options: Options }) => Query | Promise<Query>;

interface Wiring {
  readonly options: Options;
  /** Default: `query` of the SDK. */
  readonly start?: Start;
  /** Answers a permission request; while `undefined` is returned, the request stays open. */
  readonly ask?: (toolName: string, input: JsonObject) => PermissionResult | undefined;
  readonly elicit?: () => ElicitationResult | undefined;
  /** Called before each tool with all tools so far. Without `hook`, no `PreToolUse` hook is set. */
  readonly hook?: (hooked: readonly string[]) => HookJSONOutput | undefined;
  readonly inwards?: LineFilter;
  readonly outwards?: LineFilter;
}

/** An Agent SDK at the pipes of a Claude Code; records all messages and requests. */
export class Owner {
  readonly query: Promise<Query>;
  readonly messages: SDKMessage[] = [];
  readonly asked: Asked[] = [];
  readonly elicited: ElicitationRequest[] = [];
  /** Tools for which `hook` was called. */
  readonly hooked: string[] = [];
  /** Error that ended `query`. */
  failure: unknown;
  readonly #changes = new Changes();
  readonly #prompts = new TransformStream<SDKUserMessage, SDKUserMessage>();
  readonly #writer = this.#prompts.writable.getWriter();

  constructor(kept: KeptClaude, wiring: Wiring) {
    const options = this.#optionsOf(kept, wiring);
    this.query = Promise.resolve((wiring.start ?? query)({ prompt: this.#prompts.readable, options }));
    void this.#read();
  }

  get results(): string[] {
    return this.messages.flatMap((message) =>
      message.type === "result" ? [message.subtype === "success" ? message.result : message.subtype] : [],
    );
  }

  /** `type` or `type/subtype` of each message, in order. */
  get kinds(): string[] {
    return this.messages.map((message) => ("subtype" in message ? `${message.type}/${message.subtype}` : message.type));
  }

  /** `_line` of each message: the number that `KeptClaude` adds. */
  get numbers(): unknown[] {
    return this.messages.map((message) => ("_line" in message ? message["_line"] : undefined));
  }

  async say(content: string, uuid: UUID = randomUUID()): Promise<void> {
    await this.#writer.write({ type: "user", message: { role: "user", content }, parent_tool_use_id: null, uuid });
  }

  async until<T>(look: (owner: this) => T | undefined): Promise<T> {
    return this.#changes.until(() => look(this));
  }

  /** Resolves with all results once there are at least `count`. */
  async result(count = 1): Promise<string[]> {
    return this.until(({ results }) => (results.length >= count ? results : undefined));
  }

  #optionsOf(kept: KeptClaude, { ask, elicit, hook, inwards, options, outwards }: Wiring): Options {
    const guard: HookCallback = async (input) => {
      this.#note(this.hooked, input.hook_event_name === "PreToolUse" ? input.tool_name : input.hook_event_name);
      return hook?.(this.hooked) ?? NEVER;
    };
    return {
      ...options,
      spawnClaudeCodeProcess: (request) => kept.connect(request, inwards, outwards),
      canUseTool: async (toolName, input, { agentID, requestId, signal, toolUseID }) => {
        this.#note(this.asked, { toolName, toolUseID, requestId, agentID, signal });
        return ask?.(toolName, input) ?? NEVER;
      },
      onElicitation: async (request) => {
        this.#note(this.elicited, request);
        return elicit?.() ?? NEVER;
      },
      ...(hook && { hooks: { PreToolUse: [{ hooks: [guard] }] } }),
    };
  }

  async #read(): Promise<void> {
    try {
      for await (const message of await this.query) this.#note(this.messages, message);
    } catch (error) {
      this.failure = error;
    }
    this.#changes.changed();
  }

  #note<T>(list: T[], item: T): void {
    list.push(item);
    this.#changes.changed();
  }
}

const NEVER = new Promise<never>(() => undefined);

export const allow = (_tool: string, updatedInput: JsonObject): PermissionResult => ({
  behavior: "allow",
  updatedInput,
});
