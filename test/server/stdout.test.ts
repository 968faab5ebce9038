import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

import { expect, it } from "vitest";
import { z } from "zod";

import { scriptTag, type Script } from "../../src/demo/model/script.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld();

const Frame = z.looseObject({ jsonrpc: z.literal("2.0"), id: z.number().optional(), result: z.unknown().optional() });

it("stdout carries JSON-RPC and nothing else, even in a session that makes everything log", async () => {
  const server = spawn(process.execPath, ["dist/cli/main.js", "--log-level", "debug"], {
    env: {
      PATH: process.env["PATH"],
      HOME: world.folder(),
      // A misspelt setting, an untrusted directory and debugging of Claude Code each write lines.
      CLAUDE_CODE_MCP_NO_SUCH_SETTING: "1",
      CLAUDE_CODE_MCP_DAEMON: "off",
      DEBUG: "*",
      NODE_DEBUG: "child_process",
      ...world.model.environment(world.configFolder),
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stderr = "";
  server.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString("utf8")));
  const lines: string[] = [];
  const waiting = new Map<number, (result: unknown) => void>();
  createInterface({ input: server.stdout }).on("line", (line) => {
    lines.push(line);
    const frame = Frame.safeParse(JSON.parse(line));
    if (frame.data?.id !== undefined) waiting.get(frame.data.id)?.(frame.data.result);
  });
  const send = (frame: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...frame })}\n`);
  const request = async (id: number, method: string, params: object) => {
    const answered = new Promise((resolve) => waiting.set(id, resolve));
    send({ id, method, params });
    return answered;
  };

  await request(1, "initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "raw", version: "1" },
  });
  send({ method: "notifications/initialized" });
  const script: Script = [
    { error: { status: 529 } },
    { tools: [{ name: "Bash", input: { command: "ls; echo noise >&2" } }] },
    { text: "ok" },
  ];
  const call = { name: "claude_code", arguments: { prompt: scriptTag(script), cwd: world.folder(), waitMs: 40_000 } };
  const answer = await request(2, "tools/call", call);
  expect(JSON.stringify(answer)).toContain('"status":"idle"');
  const ended = new Promise((resolve) => server.once("exit", resolve));
  server.stdin.end();
  expect(await ended).toBe(0);

  expect(lines.length).toBeGreaterThanOrEqual(2);
  expect(lines.filter((line) => !Frame.safeParse(JSON.parse(line)).success)).toEqual([]);
  expect(stderr).toContain("CLAUDE_CODE_MCP_NO_SUCH_SETTING");
});
