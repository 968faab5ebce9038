/** Baseline: runs equal work directly with the Agent SDK. */
import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";

import { query } from "@anthropic-ai/claude-agent-sdk";

/**
 * Options to start Claude Code like the server, as far as they affect the work: equal prompt, settings and permission requests.
 */
function optionsIn(world, over) {
  return {
    cwd: world.folder(),
    env: { ...world.environment, CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: "1" },
    systemPrompt: { type: "preset", preset: "claude_code" },
    settingSources: ["user", "project", "local"],
    permissionMode: "default",
    mcpServersDelivery: "initialize",
    canUseTool: (_tool, input) => Promise.resolve({ behavior: "allow", updatedInput: input }),
    ...over,
  };
}

/** Runs one prompt in a separate process. Resolves after the process has ended, to times since the call, ms. */
export async function rawQuery(world, prompt, over = {}) {
  const began = performance.now();
  const since = () => performance.now() - began;
  const times = new Map();
  let sessionId;
  for await (const message of query({ prompt, options: optionsIn(world, over) })) {
    if (message.type === "system" && message.subtype === "init") times.set("init", since());
    if (message.type !== "result") continue;
    if (message.is_error) throw new Error(`raw query: ${JSON.stringify(message).slice(0, 500)}`);
    times.set("result", since());
    sessionId = message.session_id;
  }
  return { initMs: times.get("init"), resultMs: times.get("result"), sessionId };
}

/**
 * Does as `rawQuery` in a Node that has not loaded the SDK yet. Resolves after both processes have ended, to the start time of
 * Node, and the time from the import of the SDK until the result, ms.
 */
export async function rawInFreshNode(world, prompt) {
  const began = performance.now();
  const child = fork(new URL("./raw-process.mjs", import.meta.url), { stdio: ["ignore", 2, 2, "ipc"] });
  await once(child, "message");
  const startMs = performance.now() - began;
  child.send({ environment: world.environment, cwd: world.folder(), prompt });
  const [resultMs] = await once(child, "message");
  await once(child, "exit");
  return { startMs, resultMs };
}

/** Process in streaming mode, for one prompt after another. */
export class RawLive {
  #waiting = [];
  #wake = () => undefined;
  #ended = false;
  #running;

  constructor(world, over = {}) {
    this.#running = query({ prompt: this.#feed(), options: optionsIn(world, over) });
  }

  /** Resolves to the messages of the turn. The last message is the result. */
  async turn(prompt) {
    const message = { role: "user", content: prompt };
    this.#waiting.push({ type: "user", message, parent_tool_use_id: null, uuid: randomUUID() });
    this.#wake();
    const messages = [];
    for (;;) {
      const { done, value } = await this.#running.next();
      if (done) throw new Error("raw: Claude Code ended in the middle of a turn");
      messages.push(value);
      if (value.type === "result") return messages;
    }
  }

  async close() {
    this.#ended = true;
    this.#wake();
    for (;;) if ((await this.#running.next()).done) return;
  }

  async *#feed() {
    for (;;) {
      if (this.#waiting.length > 0) yield this.#waiting.shift();
      else if (this.#ended) return;
      else await new Promise((resolve) => (this.#wake = resolve));
    }
  }
}
