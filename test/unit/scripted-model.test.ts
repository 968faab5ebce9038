import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";

import { parseScript, type Script, scriptTag } from "../../src/demo/model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../src/demo/model/server.ts";

const Message = z.object({
  id: z.string(),
  model: z.string(),
  stop_reason: z.string().nullable(),
  usage: z.object({ input_tokens: z.number(), output_tokens: z.number() }),
  content: z.array(z.record(z.string(), z.unknown())),
});
const Failure = z.object({ type: z.literal("error"), error: z.object({ type: z.string(), message: z.string() }) });
const Event = z.looseObject({ type: z.string(), delta: z.record(z.string(), z.unknown()).optional() });

interface Turn {
  readonly role: string;
  readonly content: unknown;
}
const user = (content: unknown): Turn => ({ role: "user", content });
const assistant = (text: string): Turn => ({ role: "assistant", content: [{ type: "text", text }] });

let model: ScriptedModel;
beforeEach(async () => {
  model = await startScriptedModel();
});
afterEach(async () => model.close());

interface PermissionRequest {
  readonly stream?: boolean;
  readonly session?: string;
  readonly agent?: string;
  readonly signal?: AbortSignal;
}

async function post(
  messages: readonly Turn[],
  { stream, session, agent, signal }: PermissionRequest = {},
): Promise<Response> {
  return fetch(`${model.url}/v1/messages?beta=true`, {
    method: "POST",
    headers: {
      ...(session === undefined ? {} : { "x-claude-code-session-id": session }),
      ...(agent === undefined ? {} : { "x-claude-code-agent-id": agent }),
    },
    body: JSON.stringify({ model: "claude-x", max_tokens: 1000, stream, messages }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function ask(messages: readonly Turn[], options?: PermissionRequest) {
  const response = await post(messages, options);
  expect(response.status).toBe(200);
  return Message.parse(await response.json());
}

async function says(messages: readonly Turn[], options?: PermissionRequest): Promise<string> {
  const { content } = await ask(messages, options);
  return content.map((block) => String(block["text"])).join("");
}

async function eventsOf(response: Response) {
  const frames = (await response.text()).split("\n\n").filter((frame) => frame !== "");
  return frames.map((frame) => {
    const [name = "", data = ""] = frame.split("\n");
    const event = Event.parse(JSON.parse(data.slice("data: ".length)));
    expect(name).toBe(`event: ${event.type}`);
    return event;
  });
}

const prompt = (script: Script) => user([{ type: "text", text: `Please.\n${scriptTag(script)}\n` }]);

describe("a reply", () => {
  const reply: Script = [
    {
      thinking: "hm",
      text: ["a\u0000", "\uD83D", "\uDE00b\uD800"],
      tools: [{ name: "Read", input: { file_path: "/x" }, id: "toolu_1" }],
      usage: { input_tokens: 7, output_tokens: 9 },
    },
  ];

  it("a reply is one message without `stream`", async () => {
    const message = await ask([prompt(reply)]);
    expect(message).toMatchObject({ model: "claude-x", stop_reason: "tool_use", usage: { input_tokens: 7 } });
    expect(message.content).toEqual([
      { type: "thinking", thinking: "hm", signature: expect.any(String) },
      { type: "text", text: "a\u0000😀b\uD800" },
      { type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "/x" } },
    ]);
    expect((await ask([prompt(reply)])).id).not.toBe(message.id);
  });

  it("a reply with `stream` is a stream of the API's events", async () => {
    const response = await post([prompt(reply)], { stream: true });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    const events = await eventsOf(response);
    const block = (deltas: number) => [
      "content_block_start",
      ...Array.from({ length: deltas }, () => "content_block_delta"),
      "content_block_stop",
    ];
    const types = ["message_start", ...block(2), ...block(3), ...block(1), "message_delta", "message_stop"];
    expect(events.map(({ type }) => type)).toEqual(types);
    const deltas = events.flatMap(({ type, delta }) => (type === "content_block_delta" ? [delta] : []));
    expect(deltas[0]).toEqual({ type: "thinking_delta", thinking: "hm" });
    expect(deltas[1]).toMatchObject({ type: "signature_delta" });
    expect(deltas.slice(2, 5).map((delta) => delta?.["text"])).toEqual(["a\u0000", "\uD83D", "\uDE00b\uD800"]);
    expect(deltas[5]).toEqual({ type: "input_json_delta", partial_json: '{"file_path":"/x"}' });
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } });
  });

  it("a reply is delayed by `delayMs`, and its parts by `chunkDelayMs`", async () => {
    const before = performance.now();
    const delays = { delayMs: 60, chunkDelayMs: 40 };
    await (await post([prompt([{ text: ["a", "b", "c"], ...delays }])], { stream: true })).text();
    expect(performance.now() - before).toBeGreaterThanOrEqual(138);
  });

  it("a reply may be empty, stop for another reason, or have several megabytes", async () => {
    expect(await ask([prompt([{ stopReason: "max_tokens" }])])).toMatchObject({
      content: [],
      stop_reason: "max_tokens",
    });
    const text = '€😀\\"'.repeat(700_000);
    expect(await says([prompt([{ text }])])).toBe(text);
    expect((await eventsOf(await post([prompt([{ text }])], { stream: true })))[2]?.delta?.["text"]).toBe(text);
  });
});

describe("the script of a request", () => {
  const two: Script = [{ text: "one" }, { text: "two" }];

  it("a script advances with the number of answers since the prompt that contains the script", async () => {
    const first = prompt(two);
    expect(await says([assistant("old"), first])).toBe("one");
    expect(await says([assistant("old"), first, assistant("one"), user("next")])).toBe("two");
    expect(await says([first, assistant("one"), user("next"), assistant("two"), user("more")])).toBe("Done.");
    expect(await says([first, assistant("one"), prompt([{ text: "new" }])])).toBe("new");
    expect(model.requests.map(({ served }) => served)).toEqual([
      { entry: 0, fault: undefined },
      { entry: 1, fault: undefined },
      { none: "past the end" },
      { entry: 0, fault: undefined },
    ]);
  });

  it("the outer one of nested scripts is used, and the last one of several", async () => {
    const inner = prompt([{ text: 'deep </model-script> " \\ <model-script>' }]);
    const nested: Script = [{ tools: [{ name: "Agent", input: { prompt: JSON.stringify(inner.content) } }] }];
    const { content } = await ask([prompt(nested)]);
    expect(content[0]).toMatchObject({ input: nested[0]?.tools?.[0]?.input });
    expect(await says([user(scriptTag(nested) + scriptTag(two))])).toBe("one");
    expect(await says([user([scriptTag(two), "plain"].map((text) => ({ type: "text", text })))])).toBe("one");
  });

  it("a script is found only in texts of the user", async () => {
    const tag = scriptTag([{ text: "wrong" }]);
    const call = { role: "assistant", content: [{ type: "tool_use", id: "t", name: "Agent", input: { prompt: tag } }] };
    const result = user([{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: tag }] }]);
    expect(await says([prompt(two), { role: "system", content: tag }, call, result])).toBe("two");
    const steered = { role: "system", content: `The user sent a new message while you were working:\n${tag}` };
    expect(await says([prompt(two), call, result, steered])).toBe("wrong");
  });

  it("a script comes from the options if the prompt has none, and may be missing", async () => {
    expect(await says([user("hello")])).toBe("The prompt has no model script.");
    await model.close();
    model = await startScriptedModel({ script: two });
    expect(await says([user("hello"), assistant("one"), user("again")])).toBe("two");
    expect(await says([prompt([{ text: "own" }])])).toBe("own");
  });

  it.each([
    ["[{", "not JSON"],
    ['{"text":"a"}', "expected array"],
    ['[{"txt":"a"}]', 'Unrecognized key: "txt"'],
    ['[{"text":"a"},{"tools":[{"name":"Bash"}]}]', "at [1].tools[0].input"],
    ['[{"error":{"status":418}}]', "at [0].error.status"],
    ['[{"cut":true,"hang":"mid-stream"}]', "only one of"],
    ['[{"text":"a","times":2}]', '"times" counts a fault'],
    ['[{"error":{"status":500,"times":1},"times":2}]', "twice"],
    ['[{"text":"a}]', "not JSON"],
  ])("the script %s is refused with a message", async (json, complaint) => {
    const response = await post([user(`<model-script>${json}</model-script>`)]);
    expect(response.status).toBe(400);
    const { error } = Failure.parse(await response.json());
    expect(error.type).toBe("invalid_request_error");
    expect(error.message).toContain(complaint);
    expect(() => parseScript(json)).toThrow(complaint);
  });
});

describe("a fault", () => {
  it("a fault applies to `times` requests, for each session and agent separately", async () => {
    const script: Script = [{ error: { status: 529, times: 2 }, text: "ok" }];
    for (const who of [{ session: "a" }, { session: "b" }, { session: "b", agent: "c" }]) {
      const statuses = [];
      for (let i = 0; i < 4; i++) statuses.push((await post([prompt(script)], who)).status);
      expect(statuses).toEqual([529, 529, 200, 200]);
    }
    // After a failed turn Claude Code sends the next prompt in the same message, so that a new prompt fails again.
    const text = { type: "text", text: scriptTag(script) };
    expect((await post([user([text, text])], { session: "a" })).status).toBe(529);
  });

  it("a fault without content precedes the next entry", async () => {
    const script: Script = [
      { error: { status: 500 } },
      { error: { status: 429, retryAfterSeconds: 3 } },
      { text: "ok" },
    ];
    expect((await post([prompt(script)])).status).toBe(500);
    const limited = await post([prompt(script)]);
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "3"]);
    expect(Failure.parse(await limited.json()).error.type).toBe("rate_limit_error");
    expect(await says([prompt(script)])).toBe("ok");
    expect(await says([prompt(script), assistant("ok"), user("next")])).toBe("Done.");
  });

  it.each([true, false])("`cut` drops the connection in the middle of a reply (stream: %s)", async (stream) => {
    const script = [prompt([{ text: ["first", "second"], cut: true }])];
    const response = await post(script, { stream });
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow("terminated");
    expect(await (await post(script, { stream })).text()).toContain("second");
  });

  it("`malformed` sends an invalid event", async () => {
    const script = [prompt([{ text: ["first", "second"], malformed: true }])];
    const text = await (await post(script, { stream: true })).text();
    expect(text).toContain("first");
    expect(text).toContain("oops");
    expect(text).not.toContain("second");
    await expect((await post([prompt([{ malformed: true }])])).json()).rejects.toThrow(SyntaxError);
  });

  it("`hang` keeps a request open until the client disconnects or the model closes", async () => {
    const before = new AbortController();
    const hanging = post([prompt([{ hang: "before-headers" }])], { signal: before.signal });
    await model.waitForRequest(({ served }) => "fault" in served && served.fault === "hang");
    before.abort();
    await expect(hanging).rejects.toThrow("aborted");

    const response = await post([prompt([{ text: ["first", "second"], hang: "mid-stream" }])], { stream: true });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (!text.includes("first")) text += (await reader.read()).value ?? "";
    const rest = reader.read();
    await model.close();
    await expect(rest).rejects.toThrow("terminated");
    expect(text).not.toContain("second");
  });
});

describe("a gate", () => {
  it("a gate holds a reply before its headers, or after them, until the gate is released", async () => {
    const passed: string[] = [];
    const before = post([prompt([{ text: "a", gateBefore: "one" }])], { stream: true }).then((response) => {
      passed.push("one");
      return response.text();
    });
    const open = await post([prompt([{ text: "b", gate: "two" }])], { stream: true });
    const after = open.text().then((text) => {
      passed.push("two");
      return text;
    });
    await model.waitForRequest(({ lastUserText }) => lastUserText.includes('"one"'));
    expect(passed).toEqual([]);
    model.release("two");
    expect(await after).toContain("message_stop");
    model.release("one");
    expect(await before).toContain("message_stop");
    expect(passed).toEqual(["two", "one"]);
  });

  it("a gate may be released early, and stays open", async () => {
    model.release("early");
    expect(await says([prompt([{ text: "a", gate: "early", gateBefore: "early" }])])).toBe("a");
  });
});

describe("concurrent conversations", () => {
  it("200 concurrent conversations are distinguished", async () => {
    const answers = Array.from({ length: 200 }, async (_, i) => {
      const text = `answer ${String(i)}`;
      const messages = [
        prompt([{ text: "first" }, { error: { status: 529 }, text, delayMs: i % 7 }]),
        assistant("first"),
      ];
      const session = String(i);
      expect((await post(messages, { session })).status).toBe(529);
      return (await says(messages, { session })) === text;
    });
    expect(await Promise.all(answers)).not.toContain(false);
    expect(model.requests.map(({ seq }) => seq)).toEqual(Array.from({ length: 400 }, (_, i) => i + 1));
  });
});
