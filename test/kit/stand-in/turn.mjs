// A turn, from prompts to result.
import { randomUUID } from "node:crypto";
import { addUsage, noUsage } from "./account.mjs";
import { ApiError } from "./api.mjs";

const DETAILS = {
  output_tokens_details: { thinking_tokens: 0 },
  server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
  service_tier: "standard",
  cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: 0 },
  inference_geo: "",
  iterations: [],
  speed: "standard",
};

export class Turn {
  stop = new AbortController();
  structured;
  /** Counts like Claude Code: 1, plus 1 for each message in the user's place. */
  length = 1;
  #session;
  #items;
  #usage = noUsage();
  #stopReason = null;
  #text = "";
  #began = performance.now();

  constructor(session, items) {
    this.#session = session;
    this.#items = items;
  }

  async run() {
    const end = await this.#play();
    const session = this.#session;
    const isOver = end.is_error && end.subtype !== "error_max_turns";
    session.hasFailed = end.is_error;
    const news = this.#items.find(({ kind }) => kind === "news");
    for (const item of this.#joined) session.lifecycle(item, "completed");
    session.emit({
      type: "result",
      ...end,
      stop_reason: this.#stopReason,
      num_turns: this.length,
      duration_ms: Math.round(performance.now() - this.#began),
      duration_api_ms: Math.round(session.account.apiMs),
      total_cost_usd: session.account.cost,
      usage: { ...this.#usage, ...DETAILS },
      modelUsage: session.account.models,
      permission_denials: session.denials,
      ...(news && { origin: { kind: "task-notification", producer: "session-task", runId: news.run } }),
      ...this.#about(),
      queued_turn_count: 0,
      result_index: session.results,
    });
    session.results += 1;
    for (const item of this.#items.filter(({ kind }) => kind !== "news"))
      session.lifecycle(item, isOver ? "cancelled" : "completed");
  }

  #joined = [];

  #about() {
    const ids = [...this.#items, ...this.#joined].flatMap(({ kind, uuid }) =>
      kind === "news" || uuid === undefined ? [] : [uuid],
    );
    return ids.length === 0 ? {} : { user_message_uuid: ids[0], user_message_uuids: ids };
  }

  async #play() {
    const { signal } = this.stop;
    try {
      return await this.#converse(signal);
    } catch (error) {
      if (signal.aborted) return this.#interrupted();
      if (error instanceof ApiError) return this.#refused(error);
      throw error;
    }
  }

  async #converse(signal) {
    const { main, settings } = this.#session;
    for (this.#requests = 1; ; this.#requests += 1) {
      this.#isAtTools = false;
      const message = await main.answer(signal, this.#requests === 1 ? this.#about() : {});
      addUsage(this.#usage, message.usage);
      this.#stopReason = message.stop_reason;
      this.#text = message.content.findLast(({ type }) => type === "text")?.text ?? "";
      const calls = message.content.filter(({ type }) => type === "tool_use");
      if (calls.length === 0) return done(this.#text);
      this.#isAtTools = true;
      await main.useAll(calls, signal);
      if (this.structured !== undefined)
        return { ...done(JSON.stringify(this.structured)), structured_output: this.structured };
      if (settings.maxBudgetUsd !== undefined && this.#session.account.cost >= settings.maxBudgetUsd)
        return overBudget(settings.maxBudgetUsd);
      if (this.#requests === settings.maxTurns) return tooLong(settings.maxTurns);
      this.#joined.push(...this.#session.join());
    }
  }

  #isAtTools = false;
  #requests = 0;

  #interrupted() {
    const text = `[Request interrupted by user${this.#isAtTools ? " for tool use" : ""}]`;
    const message = { role: "user", content: [{ type: "text", text }] };
    this.#session.main.messages.push(message);
    this.#session.main.tellUser(message);
    const reason = `stop_reason=${String(this.#stopReason)}`;
    return {
      subtype: "error_during_execution",
      is_error: true,
      terminal_reason: this.#isAtTools ? "aborted_tools" : "aborted_streaming",
      errors: [`[ede_diagnostic] result_type=user last_content_type=n/a ${reason}`],
    };
  }

  #refused(error) {
    this.#stopReason = "stop_sequence";
    const about = this.#session.main.refused(error, this.#requests === 1 ? this.#about() : {});
    return { subtype: "success", is_error: true, terminal_reason: "api_error", ...about, result: error.text };
  }
}

const done = (result) => ({
  subtype: "success",
  is_error: false,
  terminal_reason: "completed",
  api_error_status: null,
  result,
});

const tooLong = (most) => ({
  subtype: "error_max_turns",
  is_error: true,
  terminal_reason: "max_turns",
  errors: [`Reached maximum number of turns (${String(most)})`],
});

const overBudget = (most) => ({
  subtype: "error_max_budget_usd",
  is_error: true,
  errors: [`Reached maximum budget ($${String(most)})`],
});

/** Returns the result of a process whose session cannot be resumed. */
export function startFailure(why, sessionId) {
  return {
    type: "result",
    session_id: sessionId,
    uuid: randomUUID(),
    subtype: "error_during_execution",
    is_error: true,
    errors: [why],
    stop_reason: null,
    num_turns: 0,
    duration_ms: 0,
    duration_api_ms: 0,
    total_cost_usd: 0,
    usage: { ...noUsage(), ...DETAILS },
    modelUsage: {},
    permission_denials: [],
    result_index: 0,
  };
}
