import { parse } from "node:path";
import { z } from "zod";
import { bundledClaudes } from "../claude/claude-files.ts";
import { childEnvironment } from "../claude/child-environment.ts";
import { isTrusted } from "../claude/folder/trust.ts";
import { NoClaudeError } from "../claude/locate.ts";
import { runClaude } from "../claude/run-claude.ts";
import { unreadFiles } from "../claude/unread-settings.ts";
import type { Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";

const id = "claude-settings";

const ANSWER_MS = 10_000;

/** Finds settings files that Claude Code ignores completely: none of their deny rules and hooks applies in a session. */
export async function checkClaudeSettings(machine: Machine): Promise<Finding[]> {
  const path = await locateClaude(machine);
  if (path === undefined) return [{ id, level: "ok", text: "No Claude Code can be asked for its settings files yet." }];
  const answer = await askSettings(path, machine);
  if ("problem" in answer) {
    return [{ id, level: "warning", text: `Which settings files Claude Code ignores is unknown: ${answer.problem}.` }];
  }
  const unread = unreadFiles(answer.settings);
  if (unread.length === 0) return [{ id, level: "ok", text: "Claude Code reads all its settings files." }];
  return unread.map((text) => ({ id, level: "error", text: `${text} Fix the file.` }));
}

async function locateClaude({ claude }: Machine): Promise<string | undefined> {
  try {
    const { path = bundledClaudes()[0], toInstall } = await claude.locate();
    return toInstall ? undefined : path;
  } catch (error) {
    // `checkClaude` reports that there is no Claude Code.
    if (error instanceof NoClaudeError) return undefined;
    throw error;
  }
}

const Response = z.object({
  type: z.literal("control_response"),
  response: z.object({ subtype: z.string(), response: z.unknown() }),
});

const REQUEST = { type: "control_request", request_id: "1", request: { subtype: "get_settings" } };

/**
 * Asks Claude Code without a prompt, hooks or MCP servers. Skips files of an untrusted folder, because sessions ignore them,
 * too.
 */
async function askSettings(path: string, { config, cwd, environment: own }: Machine) {
  const environment = childEnvironment(own, { depth: 0 });
  const isOurs = await isTrusted(cwd, { trustDirs: config.trustDirs, trustsRecord: true }, environment);
  const words = [
    "--print",
    "--verbose",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--strict-mcp-config",
    `--settings=${JSON.stringify({ disableAllHooks: true })}`,
    `--setting-sources=${isOurs ? "user,project,local" : "user"}`,
  ];
  const question = { environment, ms: ANSWER_MS, cwd: isOurs ? cwd : parse(process.execPath).root };
  const answer = await runClaude(path, words, { ...question, input: `${JSON.stringify(REQUEST)}\n` });
  if ("problem" in answer) return { problem: `${path} ${answer.problem.slice(0, 200)}` };
  const [said] = answer.text.split("\n").flatMap(responseIn);
  return said?.subtype === "success" ? { settings: said.response } : { problem: `${path} gave no settings` };
}

function responseIn(line: string): z.infer<typeof Response>["response"][] {
  try {
    const { data } = Response.safeParse(JSON.parse(line));
    return data ? [data.response] : [];
  } catch {
    return [];
  }
}
