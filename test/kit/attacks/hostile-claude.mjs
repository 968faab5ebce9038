#!/usr/bin/env node
// A misbehaving Claude Code: initializes as the real one does, then writes the output that its first prompt describes (a
// `Misbehaviour` as JSON), and ends with exit code 3.
import { once } from "node:events";
import { createInterface } from "node:readline";

const MEGABYTE = 1_048_576;

async function write(stream, chunk) {
  if (!stream.write(chunk)) await once(stream, "drain");
}

/** Writes `lines`; then `repeat` `times` times, with # replaced by the index; then `megabytes` without a line break. */
async function misbehave({ lines = [], megabytes = 0, repeat = "", times = 0, stream = "stdout" }) {
  const out = process[stream];
  for (const line of lines) await write(out, `${line}\n`);
  for (let time = 0; time < times; time += 1) await write(out, repeat.replace("#", String(time)));
  const chunk = Buffer.alloc(MEGABYTE, "x");
  for (let written = 0; written < megabytes; written += 1) await write(out, chunk);
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.type === "control_request") {
    const response = { subtype: "success", request_id: message.request_id, response: { commands: [], models: [] } };
    await write(process.stdout, `${JSON.stringify({ type: "control_response", response })}\n`);
  }
  if (message.type !== "user") continue;
  const { content } = message.message;
  await misbehave(JSON.parse(typeof content === "string" ? content : content.find(({ text }) => text)?.text));
  process.exit(3);
}
