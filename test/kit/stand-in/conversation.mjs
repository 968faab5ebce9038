// The conversation between the model and the tools, of the session or of a subagent.
import { randomUUID } from "node:crypto";
import { noUsage } from "./account.mjs";
import { send } from "./api.mjs";
import { isConcurrent, normalInput, ToolError } from "./tools.mjs";
import { Stopped, useTool } from "./use.mjs";

const REJECTED =
  "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.";

const CORRECTION =
  " Correction to the text above: this call was stopped while running, not refused before it ran. It may have run in part or in full, and its changes may have been written. No permission prompt was involved. Work it started elsewhere (a remote command, a background process) may still be running, so check before starting the same work again. The instruction to stop and wait still stands.";

/** Usage details of a message without a model. */
const NO_DETAILS = {
  output_tokens_details: null,
  server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
  service_tier: null,
  cache_creation: { ephemeral_1h_input_tokens: 0, ephemeral_5m_input_tokens: 0 },
  inference_geo: null,
  iterations: null,
  speed: null,
};

export class Conversation {
  messages = [];
  /** Fields of a subagent's messages; `undefined` for the session itself. */
  agent;
  #session;
  #model;

  constructor(session, agent, model) {
    this.#session = session;
    this.agent = agent;
    this.#model = model;
  }

  get session() {
    return this.#session;
  }

  #about() {
    const { agent } = this;
    if (!agent) return { parent_tool_use_id: null };
    return {
      parent_tool_use_id: agent.toolUseId,
      agent_id: agent.id,
      subagent_type: agent.type,
      task_description: agent.description,
    };
  }

  /** Reports an error of the API in place of an answer. Returns the fields that the result has too. */
  refused(error, first = {}) {
    const { isLimit, kind, plan, requestId, status, text, type } = error;
    const about = {
      ...(!this.agent && { api_error_status: status }),
      ...(type !== undefined && { api_error_type: type }),
    };
    const limited = isLimit && { api_error: "usage_limit_reached" };
    const { unifiedWindows: _, ...info } = plan ?? {};
    const message = {
      id: randomUUID(),
      model: "<synthetic>",
      role: "assistant",
      stop_reason: "stop_sequence",
      stop_sequence: "",
      type: "message",
      usage: { ...noUsage(), ...NO_DETAILS },
      content: [{ type: "text", text }],
      context_management: null,
    };
    const uuid = this.#emit({
      type: "assistant",
      message,
      ...(requestId !== undefined && { request_id: requestId }),
      error: kind,
      is_api_error_message: true,
      ...about,
      ...(limited && { ...limited, api_error_params: { rate_limit_info: info } }),
      ...first,
    });
    if (!this.agent)
      this.#session.transcript.message("assistant", uuid, message, { isApiErrorMessage: true, error: kind });
    return { ...about, ...limited };
  }

  /** Requests the model's next message and reports each block. `first` is added to the first block. */
  async answer(signal, first = {}) {
    const session = this.#session;
    const model = this.#model ?? session.model;
    let more = first;
    const tell = (message, block, aborted) => {
      const { content: _, requestId, ...rest } = message;
      if (block.type === "tool_use") block.input = normalInput(block.name, block.input, session);
      const told = { ...rest, content: [block], context_management: null };
      const uuid = this.#emit({
        type: "assistant",
        message: told,
        request_id: requestId,
        ...(aborted && { aborted: true }),
        ...more,
      });
      more = {};
      if (!this.agent) session.transcript.message("assistant", uuid, { ...told, content: [block] });
    };
    const began = performance.now();
    const { plan, ...message } = await send(session.settings, this.#request(model), {
      signal,
      onBlock: tell,
      onEvent: (event) => session.partial(event, this.#about(), this.agent === undefined ? first : {}),
      onRetry: (retry) => session.emit({ type: "system", subtype: "api_retry", ...retry }),
    }).catch((error) => {
      session.plan.tell(error.plan);
      throw error;
    });
    session.plan.tell(plan);
    session.account.apiMs += performance.now() - began;
    session.account.add(model, message.usage);
    this.messages.push({ role: "assistant", content: message.content });
    return message;
  }

  #request(model) {
    const { agent } = this;
    const session = this.#session;
    const body = {
      model,
      max_tokens: 32_000,
      stream: true,
      system: session.systemPrompt,
      messages: this.messages,
      tools: session.toolNames().map((name) => ({ name })),
      metadata: { user_id: JSON.stringify({ session_id: session.sessionId }) },
    };
    const headers = {
      "x-claude-code-session-id": session.sessionId,
      ...(agent && { "x-claude-code-agent-id": agent.id }),
    };
    return { body, headers };
  }

  /** Runs `calls`: read-only tools concurrently, all others sequentially. */
  async useAll(calls, signal) {
    const results = new Map();
    const one = async (call) => results.set(call.id, await this.#use(call, signal));
    for (let at = 0; at < calls.length;) {
      let end = at + 1;
      if (isConcurrent(calls[at].name)) while (end < calls.length && isConcurrent(calls[end].name)) end += 1;
      await Promise.all(calls.slice(at, end).map(one));
      at = end;
    }
    this.messages.push({ role: "user", content: calls.map(({ id }) => results.get(id)) });
    signal.throwIfAborted();
  }

  async #use(call, signal) {
    try {
      signal.throwIfAborted();
      const { content, isError, isUnmarked, meta, output } = await useTool(call, this, signal);
      const error = isError === undefined || isUnmarked ? {} : { is_error: isError };
      return this.#result({ tool_use_id: call.id, type: "tool_result", content, ...error }, output, meta);
    } catch (error) {
      if (signal.aborted)
        return this.#refused(call, {
          content: REJECTED + (error instanceof Stopped ? CORRECTION : ""),
          output: "User rejected tool use",
          meta: { non_execution_kind: "user-rejected" },
        });
      if (!(error instanceof ToolError)) throw error;
      const { isUse, message, meta } = error;
      const isPlain = /^InputValidationError|^Error: /.test(message);
      const content = isUse ? `<tool_use_error>${message}</tool_use_error>` : message;
      return this.#refused(call, { content, output: isPlain ? message : `Error: ${message}`, meta });
    }
  }

  #refused({ id }, { content, meta, output }) {
    return this.#result({ type: "tool_result", content, is_error: true, tool_use_id: id }, output, meta);
  }

  #result(block, output, meta) {
    const message = { role: "user", content: [block] };
    const more = {
      ...(!this.agent && { tool_use_result: output }),
      ...(meta && { tool_result_meta: [{ id: block.tool_use_id, ...meta }] }),
    };
    this.tellUser(message, more);
    return block;
  }

  /** Reports a message in the user's place. */
  tellUser(message, more = {}) {
    const uuid = this.#emit({ type: "user", message, ...more });
    this.#session.counted(this);
    if (!this.agent) this.#session.transcript.message("user", uuid, message);
  }

  #emit(message) {
    const uuid = randomUUID();
    this.#session.emit({ ...message, ...this.#about(), uuid, timestamp: new Date().toISOString() });
    return uuid;
  }
}
