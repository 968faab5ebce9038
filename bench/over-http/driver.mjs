/** Client that runs turn after turn of a session over HTTP and answers its requests. */
import { setTimeout as sleep } from "node:timers/promises";

import { prompt } from "../world.mjs";
import { connect, Refused } from "./clients.mjs";

const WAIT_MS = 20_000;
/** Every `ASKS_EVERY`-th turn has a request. */
const ASKS_EVERY = 4;
const RETRY_MS = 100;
const NO_EVENTS = { pollOptions: { includeEvents: false } };

export class Driver {
  turns = 0;
  asked = 0;
  sessionId = undefined;
  #kind;
  #door;
  #cwd;
  #counts;
  #client;
  #cursor = 1;
  #leaving;
  #answering;

  constructor({ counts, cwd, door, kind }) {
    this.#counts = counts;
    this.#cwd = cwd;
    this.#door = door;
    this.#kind = kind;
  }

  /** Runs the first turn. Resolves to the session's id. */
  async begin() {
    const key = crypto.randomUUID();
    const given = { prompt: scriptOf(1), cwd: this.#cwd, idempotencyKey: key };
    ({ nextCursor: this.#cursor, sessionId: this.sessionId } = await this.#call("claude_code", given));
    return this.sessionId;
  }

  /** Runs `turns` turns, or turn after turn until `leave` is called. */
  async drive(turns = Number.POSITIVE_INFINITY) {
    for (let turn = 1; ; turn += 1) {
      await this.#follow(turn);
      if (this.#leaving) break;
      this.turns = turn;
      if (turn === turns) break;
      const reply = { sessionId: this.sessionId, prompt: scriptOf(turn + 1), idempotencyKey: crypto.randomUUID() };
      ({ nextCursor: this.#cursor } = await this.#call("claude_code_reply", reply));
    }
    await this.#leaving;
    await this.#client.close();
  }

  /** Interrupts the running turn and begins no other. */
  async leave() {
    this.#leaving = this.#interrupt();
    await this.#leaving;
  }

  async #interrupt() {
    // Waits for the open answer, because the interrupt may end the request first.
    await this.#answering;
    await this.#call("claude_code_session", { action: "interrupt", sessionId: this.sessionId });
  }

  /** Waits until the turn has ended. */
  async #follow(turn) {
    const { sessionId } = this;
    for (;;) {
      const poll = { action: "poll", sessionId, cursor: this.#cursor, waitMs: WAIT_MS, ...NO_EVENTS };
      const answer = await this.#call("claude_code_check", poll);
      this.#cursor = answer.nextCursor;
      const [action] = answer.actions ?? [];
      if (action && this.#leaving) {
        // The interrupt came before this turn.
        await this.#leaving;
        await this.#interrupt();
      } else if (action) {
        const { requestId } = action;
        const decision = { action: "respond_permission", sessionId, requestId, decision: "allow", waitMs: 0 };
        this.#answering = this.#call("claude_code_check", { ...decision, ...NO_EVENTS });
        await this.#answering;
        this.asked += 1;
      } else if (answer.result && answer.status !== "running") {
        const { result } = answer.result;
        if (result !== endOf(turn) && !this.#leaving)
          this.#counts.failed.push(`turn ${String(turn)} of ${sessionId} ended: ${result}`);
        return;
      }
    }
  }

  async #call(tool, args) {
    for (;;) {
      try {
        this.#client ??= await connect(this.#kind, this.#door);
        const answer = await this.#client.call(tool, args);
        this.#counts.calls += 1;
        return answer;
      } catch (error) {
        this.#client?.vanish();
        this.#client = undefined;
        if (!this.#counts.note(error)) throw error;
        await sleep(error instanceof Refused ? error.afterMs : RETRY_MS);
      }
    }
  }
}

function endOf(turn) {
  return `That was turn ${String(turn)}.`;
}

/** Returns the prompt of a turn with text, two commands and sometimes a request. */
function scriptOf(turn) {
  const command = turn % ASKS_EVERY === 1 ? "touch asked" : "seq 20";
  return prompt(
    { text: ["Now ", "to ", "the ", "work."], chunkDelayMs: 20, tools: [bash("seq 200")] },
    { delayMs: 100, tools: [bash(command)] },
    { text: endOf(turn) },
  );
}

function bash(command) {
  return { name: "Bash", input: { command, description: "A little of something" } };
}
