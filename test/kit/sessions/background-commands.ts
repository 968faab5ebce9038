import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Server } from "../servers/stdio-server.ts";

/** Runs forever, and is found by its last argument. */
const FOREVER = "/bin/sh -c 'while :; do /bin/sleep 0.2; done'";
const DEAF = `/bin/sh -c 'trap "" TERM HUP INT; while :; do /bin/sleep 0.2; done'`;
const QUIET = "</dev/null >/dev/null 2>&1";

/** Ways for a Bash command to leave a process behind; `$` stands for the word by which the process is found. */
const KINDS = {
  "cmd &": `${FOREVER} $ ${QUIET} &`,
  nohup: `nohup ${FOREVER} $ ${QUIET} &`,
  setsid: `setsid ${FOREVER} $ ${QUIET} &`,
  "double fork": `( ( ${FOREVER} $ ${QUIET} & ) & )`,
  "env -i setsid": `env -i /usr/bin/setsid ${FOREVER} $ ${QUIET} &`,
  "env -u CLAUDE_CODE_MCP_PROCESS setsid": `env -u CLAUDE_CODE_MCP_PROCESS setsid ${FOREVER} $ ${QUIET} &`,
  "setsid with a trap on TERM": `setsid ${DEAF} $ ${QUIET} &`,
} as const;

export type Kind = keyof typeof KINDS;
export const ALL_KINDS = Object.keys(KINDS).filter((kind): kind is Kind => kind in KINDS);

/** Returns a command that leaves a process behind, which `runningWith` finds by `word`. */
export function daemonCommand(kind: Kind, word: string): string {
  return KINDS[kind].replace("$", word);
}

/** Processes that a session's Bash has left behind. */
export interface Daemons {
  readonly sessionId: string;
  left(): { kind: Kind; pid: number }[];
  /** Kinds still running, each once. */
  kinds(): Kind[];
  /** Resolves when none runs any more or after `ms`, with the kinds still running. */
  leftAfter(ms: number): Promise<Kind[]>;
  kill(): void;
}

/** Runs a turn whose Bash leaves one process of each kind behind. */
export async function leaveDaemons(
  server: Pick<Server, "call">,
  { advanced, cwd, kinds = ALL_KINDS }: { cwd: string; kinds?: readonly Kind[]; advanced?: Record<string, unknown> },
): Promise<Daemons> {
  const word = (kind: Kind) => `daemon-${String(ALL_KINDS.indexOf(kind))}-of-${cwd}`;
  const command = kinds.map((kind) => daemonCommand(kind, word(kind))).join("\n");
  const script = [{ tools: [{ name: "Bash", input: { command } }] }, { text: "They run." }];
  const start = {
    prompt: scriptTag(script),
    cwd,
    allowedTools: ["Bash"],
    waitMs: 40_000,
    // Beside other attacks, Claude Code can take longer than the default of 10 s to start.
    advanced: { sessionInitTimeoutMs: 30_000, ...advanced },
  };
  const { result, sessionId } = await server.call("claude_code", start);
  if (result?.result !== "They run.") throw new Error(`the turn did not end well: ${JSON.stringify(result)}`);
  const left = () => kinds.flatMap((kind) => runningWith(word(kind)).map((pid) => ({ kind, pid })));
  const living = () => [...new Set(left().map(({ kind }) => kind))];
  const deadline = Date.now() + 10_000;
  while (living().length < kinds.length) {
    if (Date.now() > deadline) throw new Error(`of the daemons there are only ${JSON.stringify(left())}`);
    await sleep(20);
  }
  return {
    sessionId,
    left,
    kinds: living,
    async leftAfter(ms) {
      const end = Date.now() + ms;
      while (left().length > 0 && Date.now() < end) await sleep(50);
      return living();
    },
    kill() {
      for (const { pid } of left()) process.kill(pid, "SIGKILL");
    },
  };
}

/** Finds processes by their last argument, because some environments cannot be read. */
export function runningWith(word: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8").endsWith(`\0${word}\0`);
      } catch {
        return false;
      }
    })
    .map(Number);
}
