// A request to the Messages API: streamed, with retries for passing errors.
import { request as httpRequest, Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { credential, hasPlan, isLimit, limitText, planIn } from "./plan.mjs";

const agent = new Agent({ keepAlive: true });
/** Far below Claude Code's half a second, so that tests do not wait, ms. */
const RETRY_MS = 50;
/** Number of times Claude Code repeats a request refused as invalid, with fewer beta features each time. */
const SIMPLER = 6;

const ERRORS = {
  400: "unknown",
  401: "authentication_failed",
  403: "authentication_failed",
  404: "model_not_found",
  413: "invalid_request",
  429: "rate_limit",
  529: "overloaded",
};

export class ApiError extends Error {
  constructor(status, type, message) {
    super(message);
    this.status = status;
    this.type = type;
  }

  get kind() {
    if (this.status === null) return "unknown";
    return ERRORS[this.status] ?? "server_error";
  }

  /** True if another try may succeed. */
  get isPassing() {
    if (this.isLimit) return false;
    return this.status === null || this.status >= 500 || [401, 429].includes(this.status);
  }

  /** True if the API has refused the request at a limit of the plan. */
  get isLimit() {
    return this.status === 429 && isLimit(this.plan);
  }

  /** Text in place of the answer. */
  get text() {
    const { message, plan, status } = this;
    if (this.isLimit) return limitText(plan);
    if (status === null) return `API Error: ${message}`;
    if (status === 401) return `Failed to authenticate. API Error: 401 ${message}`;
    if (status === 403) return `Failed to authenticate. API Error: 403 ${message}`;
    if (status === 429 && hasPlan)
      return `API Error: Server is temporarily limiting requests (not your usage limit) · ${message}`;
    if (status === 429) return `API Error: Request rejected (429) · ${message}`;
    return `API Error: ${status} ${message}`;
  }
}

function post(baseUrl, { body, headers }, signal) {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const request = httpRequest(new URL("/v1/messages?beta=true", baseUrl), {
      method: "POST",
      agent,
      signal,
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(text),
        ...credential,
        ...headers,
      },
    });
    request.once("response", resolve);
    request.once("error", reject);
    request.end(text);
  });
}

async function refusalOf(response) {
  let text = "";
  for await (const chunk of response) text += chunk;
  try {
    const { error } = JSON.parse(text);
    const failure = new ApiError(response.statusCode, error.type, error.message);
    failure.requestId = response.headers["request-id"];
    return failure;
  } catch {
    return new ApiError(response.statusCode, "api_error", text);
  }
}

async function* eventsIn(response) {
  let text = "";
  let ended = false;
  for await (const chunk of response.setEncoding("utf8")) {
    text += chunk;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const event = JSON.parse(part.slice(part.indexOf("data: ") + 6));
      ended ||= event.type === "message_stop";
      yield event;
    }
  }
  if (!ended) throw new Error("the stream broke off");
}

/** Yields the events of the first complete answer. `onRetry` is called before each retry. */
async function* streamed(target, request, { onRetry, signal }) {
  const { baseUrl, retries } = target;
  for (let attempt = 0, simpler = 0; ;) {
    let told = false;
    try {
      const response = await post(baseUrl, request, signal);
      if (response.statusCode !== 200) throw await retryable(response);
      yield { type: "request", id: response.headers["request-id"], plan: planIn(response.headers, "allowed") };
      for await (const event of eventsIn(response)) {
        told ||= event.type === "content_block_stop";
        yield event;
      }
      return;
    } catch (error) {
      signal.throwIfAborted();
      const failure = error instanceof ApiError ? error : new ApiError(null, undefined, error.message);
      if (failure.status === 400 && (simpler += 1) <= SIMPLER) continue;
      if (told || !failure.isPassing || attempt >= retries) throw failure;
      attempt += 1;
      const { kind, retryAfter = RETRY_MS, status } = failure;
      onRetry({ attempt, max_retries: retries, retry_delay_ms: retryAfter, error_status: status, error: kind });
      await sleep(retryAfter, undefined, { signal });
    }
  }
}

async function retryable(response) {
  const failure = await refusalOf(response);
  if (failure.status === 429) failure.plan = planIn(response.headers, "rejected");
  const after = Number(response.headers["retry-after"]);
  if (after >= 0) failure.retryAfter = after * 1000;
  return failure;
}

/** Assembles the message: `onEvent` gets each event, `onBlock` each finished block. Resolves with the whole message. */
export async function send(target, request, { onBlock, onEvent, onRetry, signal }) {
  let message;
  let block;
  let json = "";
  let requestId;
  let plan;
  const finish = () => {
    if (block.type === "tool_use") block.input = json === "" ? {} : JSON.parse(json);
    message.content.push(block);
    onBlock(message, block);
    block = undefined;
  };
  try {
    for await (const event of streamed(target, request, { onRetry, signal })) {
      if (event.type === "request") {
        ({ id: requestId, plan } = event);
        block = undefined;
        continue;
      }
      onEvent(event);
      if (event.type === "message_start") message = { ...event.message, content: [], requestId };
      if (event.type === "content_block_start") {
        block = { ...event.content_block };
        json = "";
      }
      if (event.type === "content_block_delta") {
        if (event.delta.type === "input_json_delta") json += event.delta.partial_json;
        else grow(block, event.delta);
      }
      if (event.type === "content_block_stop") finish();
      if (event.type === "message_delta") Object.assign(message, { ...event.delta, usage: event.usage });
    }
  } catch (error) {
    // Partial text is kept when the user interrupts the answer.
    if (signal.aborted && block?.type === "text" && block.text !== "") onBlock(message, block, true);
    throw error;
  }
  return { ...message, plan };
}

function grow(block, { type, ...delta }) {
  const [[field, text]] = Object.entries(delta);
  if (type === "signature_delta") block.signature = text;
  else block[field] += text;
}

/** Throws if the model does not exist: like Claude Code, asks for one token. */
export async function probe({ baseUrl }, model, headers) {
  const body = { model, max_tokens: 1, messages: [{ role: "user", content: "test" }] };
  const response = await post(baseUrl, { body, headers });
  if (response.statusCode === 404) throw new Error(`Model '${model}' not found`);
  response.resume();
}
