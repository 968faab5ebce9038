/**
 * What this server adds to what it is made of, as ratios to a base taken in the same run: medians of interleaved rounds,
 * so that a machine that slows down slows both. Needs a build. `--rounds N` (7), `--json`.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { query } from "@anthropic-ai/claude-agent-sdk";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { scriptTag } from "../dist/demo/model/script.js";
import { startScriptedModel } from "../dist/demo/model/server.js";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "7" }, json: { type: "boolean" } } });
const rounds = Number(values.rounds);

const home = mkdtempSync(join(tmpdir(), "ccm-bench-"));
const model = await startScriptedModel();
const environment = { PATH: process.env.PATH ?? "", HOME: home, ...model.environment(join(home, "config")) };
const prompt = `go ${scriptTag([{ text: "hi" }])}`;
const samples = new Map();

for (let round = 0; round < rounds; round++) {
  note("bare node", await bareNode());
  await server();
  await raw();
}
await model.close();
rmSync(home, { recursive: true, force: true, maxRetries: 5 });
report();

function note(name, ms) {
  samples.set(name, [...(samples.get(name) ?? []), ms]);
}

async function timed(name, work) {
  const began = performance.now();
  const value = await work();
  note(name, performance.now() - began);
  return value;
}

async function bareNode() {
  const began = performance.now();
  await new Promise((resolve) => spawn(process.execPath, ["-e", "0"]).once("exit", resolve));
  return performance.now() - began;
}

async function server() {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: ["dist/cli/main.js", "serve", "--log-level", "silent"],
    env: environment,
  });
  const client = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const call = async (name, args) => (await client.callTool({ name, arguments: args })).structuredContent;
  await timed("server: spawn -> initialize", () => client.connect(transport));
  await timed("server: tools/list", () => client.listTools());
  const cwd = mkdtempSync(join(home, "work-"));
  const began = performance.now();
  const { sessionId } = await timed("server: claude_code returns (first call)", () =>
    call("claude_code", { prompt, cwd }),
  );
  await call("claude_code_check", { action: "poll", sessionId, until: "end", waitMs: 40_000 });
  note("server: first prompt -> result", performance.now() - began);
  await timed("server: later prompt -> result", () => call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 }));
  await client.close();
}

async function raw() {
  const waiting = [];
  let wake = () => {};
  const feed = (async function* () {
    for (;;) {
      if (waiting.length > 0) yield waiting.shift();
      else await new Promise((resolve) => (wake = resolve));
    }
  })();
  const push = () => {
    waiting.push({
      type: "user",
      message: { role: "user", content: prompt },
      parent_tool_use_id: null,
      uuid: randomUUID(),
    });
    wake();
  };
  const cwd = mkdtempSync(join(home, "work-"));
  const systemPrompt = { type: "preset", preset: "claude_code" };
  const running = query({
    prompt: feed,
    options: { cwd, env: environment, systemPrompt, mcpServersDelivery: "initialize" },
  });
  const result = async () => {
    push();
    for (;;) {
      const { value } = await running.next();
      if (value.type === "result") return;
    }
  };
  await timed("raw SDK: first prompt -> result", result);
  await timed("raw SDK: later prompt -> result", result);
  running.close();
}

function median(name) {
  const sorted = (samples.get(name) ?? []).toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function report() {
  const rows = [
    ["server: spawn -> initialize", "bare node"],
    ["server: tools/list", "bare node"],
    ["server: claude_code returns (first call)", "raw SDK: first prompt -> result"],
    ["server: first prompt -> result", "raw SDK: first prompt -> result"],
    ["server: later prompt -> result", "raw SDK: later prompt -> result"],
  ].map(([name, base]) => ({ name, base, ms: median(name), baseMs: median(base), ratio: median(name) / median(base) }));
  if (values.json) return console.log(JSON.stringify({ rounds, node: process.version, rows }, undefined, 2));
  for (const { base, baseMs, ms, name, ratio } of rows) {
    console.log(
      `${name.padEnd(42)} ${ms.toFixed(0).padStart(6)} ms  ${ratio.toFixed(2).padStart(6)}x  ${base} (${baseMs.toFixed(0)} ms)`,
    );
  }
}
