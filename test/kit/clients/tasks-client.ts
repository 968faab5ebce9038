import { z } from "zod";
import type { Server } from "../servers/stdio-server.ts";
import { frames, post, type HttpServer } from "../servers/http-server.ts";

/** A client of the Tasks extension without a library, because the SDK's client cannot take a task. */

const Form = z.looseObject({
  method: z.literal("elicitation/create"),
  params: z.union([
    z.looseObject({
      mode: z.literal("form"),
      message: z.string(),
      requestedSchema: z.looseObject({}),
      url: z.undefined().optional(),
    }),
    z.looseObject({ mode: z.literal("url"), message: z.string(), url: z.string() }),
  ]),
});

const Content = z.array(z.looseObject({ type: z.literal("text"), text: z.string() }));

const Begun = z.looseObject({
  structuredContent: z.looseObject({ sessionId: z.string(), status: z.string(), nextCursor: z.number() }),
});

/** Answer at the end of a task. Queries have another `result` than `claude_code`. */
const CallResult = z.looseObject({
  content: Content,
  structuredContent: z.looseObject({
    sessionId: z.string(),
    status: z.string(),
    result: z.looseObject({ result: z.string().optional(), isError: z.boolean().optional() }).optional(),
  }),
});

const Task = z.looseObject({
  resultType: z.string(),
  taskId: z.string(),
  sessionId: z.string(),
  status: z.enum(["working", "input_required", "completed", "cancelled"]),
  statusMessage: z.string(),
  createdAt: z.iso.datetime(),
  lastUpdatedAt: z.iso.datetime(),
  ttlMs: z.number(),
  pollIntervalMs: z.number(),
  inputRequests: z.record(z.string(), Form).optional(),
  result: CallResult.optional(),
});
export type Task = z.infer<typeof Task>;

const Answer = z.looseObject({
  result: z.looseObject({}).optional(),
  error: z.looseObject({ code: z.number(), message: z.string(), data: z.unknown().optional() }).optional(),
});
type Answer = z.infer<typeof Answer>;

type Send = (id: string, method: string, params: object) => Promise<unknown>;

const EXTENSION = "io.modelcontextprotocol/tasks";
export const DECLARED = { elicitation: { form: {} }, extensions: { [EXTENSION]: {} } };
export const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "by hand", version: "1" },
};

let sent = 0;

export class TaskClient {
  readonly #send: Send;
  readonly #capabilities: object;

  constructor(send: Send, capabilities: object = DECLARED) {
    this.#send = send;
    this.#capabilities = capabilities;
  }

  /** Returns a client on the same connection with other `capabilities`. */
  declaring(capabilities: object): TaskClient {
    return new TaskClient(this.#send, capabilities);
  }

  async ask(method: string, params: object): Promise<Answer> {
    sent += 1;
    const meta = { ...META, "io.modelcontextprotocol/clientCapabilities": this.#capabilities };
    return Answer.parse(await this.#send(`by-hand-${String(sent)}`, method, { ...params, _meta: meta }));
  }

  /** Throws if the answer is an error. */
  async result(method: string, params: object): Promise<Record<string, unknown>> {
    const { error, result } = await this.ask(method, params);
    if (!result) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }

  async refusal(method: string, params: object): Promise<{ code: number; message: string }> {
    const { error, result } = await this.ask(method, params);
    if (!error) throw new Error(`${method} was not refused: ${JSON.stringify(result)}`);
    return error;
  }

  async call(tool: string, args: object): Promise<Record<string, unknown>> {
    return this.result("tools/call", { name: tool, arguments: args });
  }

  /** Resolves with the created task and its session. */
  async begin(tool: string, args: object): Promise<{ task: Task; sessionId: string; nextCursor: number }> {
    const begun = await this.call(tool, args);
    const { structuredContent } = Begun.parse(begun);
    return { task: Task.parse(begun), ...structuredContent };
  }

  async get({ taskId }: Pick<Task, "taskId">): Promise<Task> {
    return Task.parse(await this.result("tasks/get", { taskId }));
  }

  /** Polls, as the protocol says, until the task has `status`. */
  async until(task: Pick<Task, "taskId">, status: Task["status"]): Promise<Task> {
    for (;;) {
      const now = await this.get(task);
      if (now.status === status) return now;
      if (now.status !== "working") throw new Error(`the task is ${now.status}: ${JSON.stringify(now)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

export function overHttp(server: HttpServer, token = server.token): TaskClient {
  return new TaskClient(async (id, method, params: { name?: string; taskId?: string }) => {
    const headers = {
      authorization: `Bearer ${token}`,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      "mcp-name": params.name ?? params.taskId ?? "",
    };
    const response = await server.fetch("/mcp", post({ jsonrpc: "2.0", id, method, params }, headers));
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) return response.json();
    for await (const { message } of frames(response)) if (message && "id" in message) return message;
    throw new Error("the answer is not there");
  });
}

/** Shares the connection of the library's client. */
export function overStdio({ transport }: Server): TaskClient {
  const waiting = new Map<unknown, (message: unknown) => void>();
  const deliver = transport.onmessage;
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a transport is not an event target
  transport.onmessage = (message: object) => {
    const answered = "id" in message ? waiting.get(message.id) : undefined;
    if (answered) answered(message);
    else Reflect.apply(deliver ?? (() => undefined), transport, [message]);
  };
  return new TaskClient(async (id, method, params) => {
    const answer = new Promise((resolve) => waiting.set(id, resolve));
    await transport.send({ jsonrpc: "2.0", id, method, params: { ...params } });
    return answer;
  });
}
