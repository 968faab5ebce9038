import { spawn } from "node:child_process";
import { once } from "node:events";
import { bundledClaudes } from "../../../src/claude/claude-files.ts";
import { scriptTag } from "../../../src/demo/model/script.ts";
import type { World } from "../world.ts";

type Script = Parameters<typeof scriptTag>[0];

/** Script that lists all sessions and sends a message to session `name`; the receiving model follows `script`. */
export function messageTo(name: string, script: Script): Script {
  const message = `Please do this. ${scriptTag(script)}`;
  return [
    { tools: [{ name: "ListAgents", input: {} }] },
    { tools: [{ name: "SendMessage", input: { to: name, message, summary: "a wish" } }] },
    { text: "Sent." },
  ];
}

/** Runs a `claude -p` of the user with the configuration folder of the world's sessions. Resolves with all output. */
export async function runStranger(world: World, script: Script): Promise<string> {
  const output = ["--output-format", "stream-json", "--verbose"];
  const args = ["-p", scriptTag(script), ...output, "--allowedTools", "ListAgents,SendMessage"];
  const child = spawn(bundledClaudes()[0] ?? "claude", args, {
    cwd: world.folder(),
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: world.folder(),
      ...world.model.environment(world.configFolder),
      ENABLE_TOOL_SEARCH: "false",
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString("utf8")));
  await once(child, "close");
  return printed;
}
