// Lines between Claude Code and the Agent SDK: messages out, and control requests in both directions.
import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";

/** Writes synchronously, so that nothing is lost when the process exits. */
export function write(message) {
  let rest = Buffer.from(`${JSON.stringify(message)}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (error.code === "EPIPE") process.exit(0);
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

const waiting = new Map();

/** Sends a control request to the SDK. On abort, cancels the request and rejects with the signal's reason. */
export async function ask(request, signal) {
  signal?.throwIfAborted();
  const id = randomUUID();
  return new Promise((resolve, reject) => {
    const abort = () => {
      waiting.delete(id);
      write({ type: "control_cancel_request", request_id: id });
      reject(signal.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    const line = { type: "control_request", request_id: id, request };
    waiting.set(id, { line, resolve, reject, settle: () => signal?.removeEventListener("abort", abort) });
    write(line);
  });
}

/** Unanswered permission requests, which a later owner is sent. */
const pending = () =>
  [...waiting.values()].map(({ line }) => line).filter(({ request }) => request.subtype === "can_use_tool");

/** Settles a request with the SDK's answer. An answer to a cancelled request is dropped. */
export function answered({ error, request_id: id, response, subtype }) {
  const asked = waiting.get(id);
  waiting.delete(id);
  asked?.settle();
  if (subtype === "error") asked?.reject(new Error(error));
  else asked?.resolve(response ?? {});
}

/** Answers a control request of the SDK. */
export async function serve({ request, request_id: id }, answers) {
  const reply = (response) => write({ type: "control_response", response: { request_id: id, ...response } });
  try {
    const answer = answers[request.subtype];
    if (!answer) throw new Error(`Unsupported control request subtype: ${request.subtype}`);
    const isInitialize = request.subtype === "initialize";
    const response = (await answer(request)) ?? {};
    reply({ subtype: "success", response, ...(isInitialize && { pending_permission_requests: pending() }) });
  } catch (error) {
    reply({ subtype: "error", error: error.message });
  }
}
