import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

import { expect } from "vitest";

import { scriptTag } from "../../../src/demo/model/script.ts";
import type { Answer } from "../clients/connection.ts";
import { readWholeLog } from "../sessions/one-turn.ts";
import type { Server } from "../servers/stdio-server.ts";
import { createWorld, type World } from "../world.ts";

/** A server with `--sandbox required` and the real bubblewrap. */
export interface Sandboxed {
  readonly world: World;
  readonly server: Server;
  /** Starts another server with the same options and `args`. */
  another(args: string[]): Promise<Server>;
  /** Folder outside every session's folders: nothing may be created there. */
  readonly outside: string;
  /** Folder that the operator trusts. */
  readonly project: string;
  /** Folder in PATH, inside `project`. */
  readonly programs: string;
}

export const SECRET = "the-secret-that-nobody-reads";

export const bypass = { permissionMode: "bypassPermissions" };

interface Call {
  name: string;
  input: Record<string, unknown>;
}

export const bash = (command: string, more: object = {}): Call => ({ name: "Bash", input: { command, ...more } });
export const write = (path: string): Call => ({ name: "Write", input: { file_path: path, content: "x" } });

export async function createSandboxed(): Promise<Sandboxed> {
  const world = await createWorld();
  const outside = world.folder();
  const project = world.folder();
  const programs = join(project, "bin");
  mkdirSync(programs);
  writeFileSync(join(outside, "secret"), SECRET);
  const rules = ["Read(**/.env)", `Read(/${outside}/secret)`].join(",");
  const all = ["--sandbox", "required", "--allow-bypass", "--deny-rules", rules, "--trust-dir", project];
  const env = { IS_SANDBOX: "1", PATH: [programs, process.env["PATH"]].join(delimiter) };
  const another = async (args: string[]) => world.server({ args: [...all, ...args], env });
  return { world, server: await another([]), another, outside, project, programs };
}

/** Plays all `tools` in one turn and resolves with the answer after the turn. */
export async function playTools(server: Server, tools: Call[], options: object): Promise<Answer> {
  const prompt = scriptTag([{ tools }, { text: "tried" }]);
  // Beside other tests, Claude Code may start slowly.
  const patient = { sessionInitTimeoutMs: 60_000 };
  const { sessionId } = await server.call("claude_code", { prompt, ...bypass, ...patient, ...options });
  let status: string | undefined;
  // A hundred commands take longer than one call may wait.
  do ({ status } = await server.end(sessionId));
  while (status === "running");
  const done = await readWholeLog(server, sessionId);
  expect(done).toMatchObject({ actions: [], result: { result: "tried" } });
  return done;
}

export function outputs({ events }: Answer): string {
  return events.map(({ data: { output } }) => (typeof output === "string" ? output : "")).join("\n");
}
