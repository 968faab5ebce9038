import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { Verification, type Answer, type DemoClient } from "./client.ts";
import type { Actor, Screen } from "./screen.ts";
import { scriptTag } from "./model/script.ts";
import type { ScriptedModel } from "./model/server.ts";

const GREETING = "Hello from Claude Code.\n";
const WAIT_MS = 20_000;

export interface Stage {
  client: DemoClient;
  screen: Screen;
  /** Temporary project in which Claude Code works. */
  project: string;
  /** Scripted model; `undefined` with a real one, for which prompts carry no script. */
  model: Pick<ScriptedModel, "requests"> | undefined;
  startedAt: number;
}

export interface Ending {
  ok: boolean;
  fileWritten: boolean;
  deniedFileAbsent: boolean;
  sameProcess: boolean;
  /** True if the receipt of the first turn has the written file. */
  receiptRight: boolean;
  /** True if the verification has passed, and the claimed file is there. */
  verified: boolean;
  /** True if the request that was refused at a limit was sent again, unchanged. Undefined with a real model. */
  wentOn?: boolean;
  turns: number;
  costUsd: number;
}

type Checks = Omit<Ending, "ok" | "turns" | "costUsd">;

/** Plays a session from first prompt to last result, from the view of a client. */
export async function play(stage: Stage): Promise<Ending> {
  const teller = new Teller(stage);
  const { sessionId, ...first } = await writeFile(stage, teller);
  const sameProcess = await goOn(stage, teller, sessionId);
  const deniedFileAbsent = await denyFile(stage, teller, sessionId);
  const { model } = stage;
  const fourth = await verifyClaim(stage, teller, sessionId);
  const fifth = model && (await waitAtLimit({ ...stage, model }, teller, sessionId));
  const { last, ...later } = { ...fourth, ...fifth };
  const checks: Checks = { ...first, sameProcess, deniedFileAbsent, ...later };
  const { sessionTotalCostUsd: costUsd = 0, sessionTotalTurns: turns = 0 } = last.result ?? {};
  return { ok: Object.values(checks).every(Boolean), ...checks, turns, costUsd };
}

async function writeFile(
  stage: Stage,
  teller: Teller,
): Promise<Pick<Checks, "fileWritten" | "receiptRight"> & { sessionId: string }> {
  const wanted = join(stage.project, "hello.txt");
  stage.screen.title("1  Start a session; Claude Code asks before it writes; we allow it");
  const started = await teller.call("claude_code", {
    prompt: prompt(stage, `Create the file ${wanted} with the text "${GREETING.trim()}".`, writeScript(wanted)),
    cwd: stage.project,
    maxTurns: 10,
    advanced: { onLimit: "wait" },
  });
  const { sessionId = "" } = started;
  const { result } = await teller.follow(sessionId, started, { decision: "allow" });
  const fileWritten = existsSync(wanted) && readFileSync(wanted, "utf8").startsWith(GREETING.trim());
  teller.say("check", fileWritten ? `${wanted} is there` : `${wanted} is NOT there`);
  const receiptRight = result?.receipt?.files?.names?.includes("hello.txt") === true;
  teller.say("check", receiptRight ? "the receipt has hello.txt" : "the receipt does NOT have hello.txt");
  return { sessionId, fileWritten, receiptRight };
}

async function goOn(stage: Stage, teller: Teller, sessionId: string): Promise<boolean> {
  stage.screen.title("2  Reply: the same process goes on, with everything still in mind");
  const replied = await teller.call("claude_code_reply", {
    sessionId,
    prompt: prompt(stage, "In one short sentence: what did you do?", [{ text: "I wrote hello.txt, as you asked." }]),
  });
  await teller.follow(sessionId, replied, { decision: "allow" });
  const sameProcess = (await countProcessStarts(stage.client, sessionId)) === 1;
  teller.say("check", sameProcess ? "one process served both turns" : "a second process was started");
  return sameProcess;
}

async function denyFile(stage: Stage, teller: Teller, sessionId: string): Promise<boolean> {
  const unwanted = join(stage.project, "forbidden.txt");
  stage.screen.title("3  Reply: Claude Code asks again; we deny it");
  const replied = await teller.call("claude_code_reply", {
    sessionId,
    prompt: prompt(stage, `Create the file ${unwanted}. If you may not, say so and stop.`, writeScript(unwanted)),
  });
  await teller.follow(sessionId, replied, {
    decision: "deny",
    denyMessage: "Not this file. Do not try another way.",
  });
  const deniedFileAbsent = !existsSync(unwanted);
  teller.say("check", deniedFileAbsent ? `${unwanted} is not there` : `${unwanted} IS there`);
  return deniedFileAbsent;
}

async function verifyClaim(
  stage: Stage,
  teller: Teller,
  sessionId: string,
): Promise<Pick<Checks, "verified"> & { last: Answer }> {
  const claimed = join(stage.project, "notes.txt");
  stage.screen.title("4  Reply with verify: Claude claims work it has not done; the server's command finds out");
  const replied = await teller.call("claude_code_reply", {
    sessionId,
    prompt: prompt(stage, `Create the file ${claimed} with the text "${GREETING.trim()}".`, [
      { text: "Done: notes.txt is written." },
      ...writeScript(claimed),
    ]),
    advanced: { verify: ["grep Hello notes.txt"] },
  });
  const last = await teller.follow(sessionId, replied, { decision: "allow" });
  const verified = last.result?.verification?.status === "passed" && existsSync(claimed);
  teller.say("check", verified ? `${claimed} is verified` : `${claimed} is NOT verified`);
  return { last, verified };
}

async function waitAtLimit(
  stage: Stage & { readonly model: Pick<ScriptedModel, "requests"> },
  teller: Teller,
  sessionId: string,
): Promise<Required<Pick<Checks, "wentOn">> & { last: Answer }> {
  stage.screen.title("5  Reply: the subscription's 5-hour window is used up; the turn waits, and goes on by itself");
  const before = stage.model.requests.length;
  const replied = await teller.call("claude_code_reply", {
    sessionId,
    prompt: prompt(stage, "Say that you are still here.", [
      { error: { status: 429, plan: { claim: "five_hour", resetsInS: RESET_S } }, text: "I am still here." },
    ]),
  });
  const last = await teller.follow(sessionId, replied, { decision: "allow" });
  const sent = stage.model.requests.slice(before).map(({ digest }) => digest);
  const wentOn = last.result?.isError === false && sent.length === 2 && sent[0] === sent[1];
  teller.say("check", wentOn ? "the refused request was sent once more, unchanged" : "the turn did NOT go on");
  return { last, wentOn };
}

/** Time until the window of the demo resets, s. */
const RESET_S = 1;

type ScriptedReply = Parameters<typeof scriptTag>[0];

function prompt({ model }: Stage, text: string, script: ScriptedReply): string {
  return model ? `${text} ${scriptTag(script)}` : text;
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
  message: z.string().optional(),
  verification: Verification.optional(),
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
    const { by, decision, message, ok, output, text, tool, verification } = EventText.parse(data);
    if (verification?.failed) this.#tellVerification(verification);
    else if (tool !== undefined && type === "output") this.say("claude", `calls ${tool}`, data);
    else if (text !== undefined && type === "output") this.say("claude", `says: ${text}`, data);
    else if (message !== undefined && type === "progress") this.say("server", message, data);
    else if (ok !== undefined) this.say("claude", `tool answered: ${oneLine(output ?? answerOf(ok))}`, data);
    else if (type === "permission_result") this.say("note", `${decision ?? ""} by ${by ?? ""}`, data);
  }

  #tellResult({ result, status }: Answer): void {
    if (!result) return this.say("note", `the turn ended: ${status ?? ""}`);
    const { durationMs, numTurns, totalCostUsd } = result;
    const numbers = `${numTurns.toString()} turns, ${usd(totalCostUsd)}, ${durationMs.toString()} ms`;
    this.say("claude", `result: ${oneLine(result.result)} (${numbers})`, { ...result });
    if (result.receipt) this.say("server", `receipt: ${JSON.stringify(result.receipt)}`);
    if (result.verification) this.#tellVerification(result.verification);
  }

  #tellVerification({ attempts, commands = [], failed, of, status }: Verification): void {
    const runs = [...commands, ...(failed ? [failed] : [])];
    const exits = runs.map(({ command, exit }) => `${command} exited with ${String(exit)}`).join(", ");
    this.say("server", `verification ${status}, attempt ${attempts.toString()} of ${of.toString()}: ${exits}`);
  }
}

const answerOf = (ok: boolean) => (ok ? "done" : "failed");

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
