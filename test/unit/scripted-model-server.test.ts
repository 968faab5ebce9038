import { readFile } from "node:fs/promises";

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";

import { parseScript, scriptTag } from "../../src/demo/model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../src/demo/model/server.ts";

const Message = z.object({ content: z.tuple([z.object({ text: z.string() })]) });
const Failure = z.object({ type: z.literal("error"), error: z.object({ type: z.string(), message: z.string() }) });

let model: ScriptedModel;
beforeEach(async () => {
  model = await startScriptedModel();
});
afterEach(async () => model.close());

/** Returns the model's answer to a request with `fields`. */
async function says(fields: object, headers: Record<string, string> = {}): Promise<string> {
  const body = JSON.stringify({ model: "claude-x", max_tokens: 1000, messages: [], ...fields });
  const response = await fetch(`${model.url}/v1/messages?beta=true`, { method: "POST", headers, body });
  return Message.parse(await response.json()).content[0].text;
}

describe("the server", () => {
  it("the server records the caller and the content of each request", async () => {
    const waiting = model.waitForRequest(({ agentId }) => agentId === "agent");
    const system = [{ type: "text", text: "You are" }];
    const metadata = { user_id: JSON.stringify({ device_id: "d", session_id: "from-metadata" }) };
    const messages = [
      { role: "user", content: "one" },
      { role: "assistant", content: "two" },
      { role: "user", content: [{ type: "text", text: "three" }] },
    ];
    const tools = [{ name: "Bash", input_schema: {} }];
    await says({ messages, system, metadata, tools }, { "x-claude-code-agent-id": "agent" });
    expect(await waiting).toMatchObject({
      seq: 1,
      method: "POST",
      path: "/v1/messages?beta=true",
      model: "claude-x",
      stream: false,
      sessionId: "from-metadata",
      agentId: "agent",
      subagent: true,
      tools: ["Bash"],
      system: "You are",
      lastUserText: "three",
      served: { none: "no script" },
    });
    expect(await model.waitForRequest(({ seq }) => seq === 1)).toBe(model.requests[0]);
    const never = model.waitForRequest(() => false);
    const aborted = model.waitForRequest(() => false, AbortSignal.abort(new Error("enough")));
    await expect(aborted).rejects.toThrow("enough");
    await Promise.all([expect(never).rejects.toThrow("closed"), model.close()]);
  });

  it("side requests are answered without using a step of the script", async () => {
    const messages = [{ role: "user", content: scriptTag([{ text: "one" }]) }];
    expect(await says({ messages, max_tokens: 1 })).toBe("Hello");
    const title = await says({ messages, output_config: { format: { type: "json_schema" } } });
    expect(JSON.parse(title)).toEqual({ title: "Scripted session" });
    expect(model.requests.map(({ served }) => served)).toEqual([{ none: "model probe" }, { none: "side question" }]);
  });

  it("the other endpoints are served, and any other request gets an error in the API's format", async () => {
    const count = await fetch(`${model.url}/v1/messages/count_tokens`, { method: "POST", body: "x".repeat(40) });
    expect(await count.json()).toEqual({ input_tokens: 10 });
    expect(await (await fetch(`${model.url}/v1/models`)).json()).toMatchObject({ data: [{ type: "model" }, {}, {}] });
    expect((await fetch(model.url, { method: "HEAD" })).status).toBe(200);
    expect((await fetch(model.url)).status).toBe(200);
    for (const [path, init, status] of [
      ["/v1/complete", {}, 404],
      ["/v1/messages", { method: "POST", body: "{" }, 400],
      ["/v1/messages", { method: "POST", body: '{"model":"m"}' }, 400],
      ["/v1/messages", { method: "POST", body: "x".repeat(33 * 1024 * 1024) }, 413],
    ] as const) {
      const response = await fetch(model.url + path, init);
      expect(response.status).toBe(status);
      Failure.parse(await response.json());
    }
  });

  it("`close` frees the port, and may be called twice", async () => {
    const port = Number(new URL(model.url).port);
    await expect(startScriptedModel({ port })).rejects.toThrow("EADDRINUSE");
    await model.close();
    await model.close();
    model = await startScriptedModel({ port });
    expect(model.url).toBe(`http://127.0.0.1:${String(port)}`);
  });
});

it("every JSON example of the manual is a valid script", async () => {
  const manual = await readFile(new URL("../../docs/scripted-model.md", import.meta.url), "utf8");
  const examples = [...manual.matchAll(/^```json\n(.*?)^```$/gms)].map(([, json]) => json ?? "");
  expect(examples.length).toBeGreaterThan(10);
  for (const example of examples) parseScript(example);
});
