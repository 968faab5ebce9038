import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Answer, DemoClient } from "./client.ts";
import type { Actor, Screen } from "./screen.ts";
import { scriptTag } from "./model/script.ts";

const GREETING = "Hello from Claude Code.\n";
const WAIT_MS = 20_000;

export interface Stage {
  client: DemoClient;
  screen: Screen;
  /** Temporary project in which Claude Code works. */
  project: string;
  /** True with a real model: prompts carry no script. */
  live: boolean;
  startedAt: number;
}

export interface Ending {
  ok: boolean;
  fileWritten: boolean;
  deniedFileAbsent: boolean;
  sameProcess: boolean;
  turns: number;
  costUsd: number;
}

/** Plays a session from first prompt to last result, from the view of a client. */
export async function play(stage: Stage): Promise<Ending> {
  const teller = new Teller(stage);
  const wanted = join(stage.project, "hello.txt");
  const unwanted = join(stage.project, "forbidden.txt");

  stage.screen.title("1  Start a session; Claude Code asks before it writes; we allow it");
  const started = await teller.call("claude_code", {
    prompt: prompt(stage, `Create the file ${wanted} with the text "${GREETING.trim()}".`, writeScript(wanted)),
    cwd: stage.project,
    maxTurns: 10,
  });
  const sessionId = started.sessionId ?? "";
  await teller.follow(sessionId, started, { decision: "allow" });
  const fileWritten = existsSync(wanted) && readFileSync(wanted, "utf8").startsWith(GREETING.trim());
  teller.say("check", fileWritten ? `${wanted} is there` : `${wanted} is NOT there`);

  stage.screen.title("2  Reply: the same process goes on, with everything still in mind");
  const replied = await teller.call("claude_code_reply", {
    sessionId,
    prompt: prompt(stage, "In one short sentence: what did you do?", [{ text: "I wrote hello.txt, as you asked." }]),
  });
  await teller.follow(sessionId, replied, { decision: "allow" });
  const sameProcess = (await countProcessStarts(stage.client, sessionId)) === 1;
  teller.say("check", sameProcess ? "one process served both turns" : "a second process was started");

  stage.screen.title("3  Reply: Claude Code asks again; we deny it");
  const third = await teller.call("claude_code_reply", {
    sessionId,
    prompt: prompt(stage, `Create the file ${unwanted}. If you may not, say so and stop.`, writeScript(unwanted)),
  });
  const last = await teller.follow(sessionId, third, {
    decision: "deny",
    denyMessage: "Not this file. Do not try another way.",
  });
  const deniedFileAbsent = !existsSync(unwanted);
  teller.say("check", deniedFileAbsent ? `${unwanted} is not there` : `${unwanted} IS there`);

  const turns = last.result?.sessionTotalTurns ?? 0;
  const costUsd = last.result?.sessionTotalCostUsd ?? 0;
  return {
    ok: fileWritten && deniedFileAbsent && sameProcess,
    fileWritten,
    deniedFileAbsent,
    sameProcess,
    turns,
    costUsd,
  };
}

type ScriptedReply = Parameters<typeof scriptTag>[0];

function prompt({ live }: Stage, text: string, script: ScriptedReply): string {
  return live ? text : `${text} ${scriptTag(script)}`;
}

function writeScript(file: string): ScriptedReply {
  return [
    { text: "I will write the file.", tools: [{ name: "Write", input: { file_path: file, content: GREETING } }] },
    { text: ["That is ", "all I ", "can do here."], chunkDelayMs: 20 },
  ];
}

async function countProcessStarts(client: DemoClient, sessionId: string): Promise<number | undefined> {
  const { sessions = [] } = await client.call("claude_code_session", { action: "get", sessionId });
  return sessions[0]?.processStarts;
}

const EventText = z.looseObject({
  text: z.string().optional(),
  tool: z.string().optional(),
  ok: z.boolean().optional(),
  output: z.string().optional(),
  decision: z.string().optional(),
  by: z.string().optional(),
});

/** Calls the tools, and prints calls, answers and actions of Claude Code. */
class Teller {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  say(who: Actor, text: string, details?: Record<string, unknown>): void {
    const at = Math.round(performance.now() - this.#stage.startedAt);
    this.#stage.screen.line({ at, who, text, ...(details && { details }) });
  }

  async call(tool: string, args: Record<string, unknown>): Promise<Answer> {
    this.say("client", `${tool} ${shortJson(args)}`, args);
    const began = performance.now();
    const answer = await this.#stage.client.call(tool, args);
    const took = `${Math.round(performance.now() - began).toString()} ms`;
    this.say("server", `${answer.status ?? "ok"}, answered in ${took}`, { ...answer });
    return answer;
  }

  /** Polls until the turn has ended, and answers requests with `answer`. */
  async follow(sessionId: string, first: Answer, answer: Record<string, unknown>): Promise<Answer> {
    let cursor = first.nextCursor;
    // Asks for full events, because people want more details than a model.
    const request = { sessionId, responseMode: "delta_compact", waitMs: WAIT_MS };
    let news = await this.call("claude_code_check", { action: "poll", ...request, cursor });
    for (;;) {
      for (const event of news.events ?? []) this.#print(event.type, event.data);
      cursor = news.nextCursor;
      const [asked] = news.actions ?? [];
      if (asked) {
        const left = `${Math.round(asked.remainingMs / 1000).toString()} s left to answer`;
        this.say("note", `waiting for a decision: ${asked.summary} (${left})`);
        const decision = { requestId: asked.requestId, ...answer };
        news = await this.call("claude_code_check", { action: "respond_permission", ...request, cursor, ...decision });
      } else if (news.status === "running") {
        news = await this.call("claude_code_check", { action: "poll", ...request, cursor });
      } else {
        this.#tellResult(news);
        return news;
      }
    }
  }

  #print(type: string, data: Record<string, unknown>): void {
    const { by, decision, ok, output, text, tool } = EventText.parse(data);
    if (type === "output" && tool !== undefined) this.say("claude", `calls ${tool}`, data);
    else if (type === "output" && text !== undefined) this.say("claude", `says: ${text}`, data);
    else if (type === "progress" && ok !== undefined) {
      this.say("claude", `tool answered: ${oneLine(output ?? (ok ? "done" : "failed"))}`, data);
    } else if (type === "permission_result") this.say("note", `${decision ?? ""} by ${by ?? ""}`, data);
  }

  #tellResult({ result, status }: Answer): void {
    if (!result) return this.say("note", `the turn ended: ${status ?? ""}`);
    const { durationMs, numTurns, totalCostUsd } = result;
    const numbers = `${numTurns.toString()} turns, ${usd(totalCostUsd)}, ${durationMs.toString()} ms`;
    this.say("claude", `result: ${oneLine(result.result)} (${numbers})`, { ...result });
  }
}

export function usd(amount: number): string {
  return `$${amount.toFixed(4)}`;
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > 100 ? `${line.slice(0, 99)}…` : line;
}

function shortJson(args: Record<string, unknown>): string {
  const shown = Object.entries(args)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => {
      const text = typeof value === "string" ? value.replace(/ <model-script>.*$/s, "") : JSON.stringify(value);
      return `${key}=${text.length > 60 ? `${text.slice(0, 59)}…` : text}`;
    });
  return shown.join(" ");
}
