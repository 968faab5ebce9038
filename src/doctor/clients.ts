import { fileOf, type Aim } from "../install/change.ts";
import { CLIENTS, type Scope } from "../install/clients.ts";
import { targetOf, type Target } from "../install/entries.ts";
import { thesePlaces } from "../install/places.ts";
import type { Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";

/** The entries of this server in the configuration of MCP clients, and whether they start this installation. */

const SCOPES: readonly Scope[] = ["user", "project"];

interface Entry {
  readonly aim: Aim;
  readonly file: string;
  readonly target: Target;
}

/** Of the user, and of the project in the folder in which the command was started. */
export async function checkClients({ cwd, environment, script, stateFolder }: Machine): Promise<Finding[]> {
  const { execPath, platform } = process;
  const running = { platform, env: environment, execPath, script, cwd, shared: false };
  const places = thesePlaces(environment, cwd);
  const aims = CLIENTS.flatMap((client) => SCOPES.map((scope): Aim => ({ client, scope, places, stateFolder })));
  const seen = new Set<string>();
  const entries: Entry[] = [];
  for (const aim of aims) {
    const file = fileOf(aim);
    // In the home folder both scopes can name the same file.
    if (file === undefined || seen.has(file)) continue;
    seen.add(file);
    const target = await targetOf(aim, running);
    if (target) entries.push({ aim, file, target });
  }
  const faults = entries.flatMap((entry) => faultOf(entry) ?? []);
  return faults.length > 0 ? faults : [{ id: "clients", level: "ok", text: summary(entries) }];
}

function faultOf({ aim: { client, scope }, file, target }: Entry): Finding | undefined {
  const place = scope === "project" ? " --scope project" : "";
  const fix = `claude-agents-mcp install ${client.id}${place}`;
  switch (target.kind) {
    case "missing": {
      const text = `${client.title} cannot start this server: its entry in ${file} names ${target.path}, which does not exist.`;
      return { id: "clients", level: "error", text, fix };
    }
    case "other": {
      const text = `${client.title} starts another installation, ${target.path}, by its entry in ${file}.`;
      return { id: "clients", level: "warning", text, fix };
    }
    case "unreadable":
      return { id: "clients", level: "warning", text: target.problem, fix: `${fix} --print` };
    case "this":
    case "npx":
    case "http":
    case "variable":
      return undefined;
  }
}

const WORDS: Readonly<Record<string, string>> = {
  this: "this installation",
  http: "a server over HTTP",
  variable: "a command with variables, which is not followed",
};

function summary(entries: readonly Entry[]): string {
  if (entries.length === 0) {
    return `No MCP client has an entry of this server ("claude-agents-mcp install" lists the clients).`;
  }
  const words = ({ aim: { client, scope }, target }: Entry) => {
    const what = target.kind === "npx" ? `the package ${target.spec} through npx` : WORDS[target.kind];
    return `${client.title}${scope === "project" ? " (project)" : ""}: ${what ?? ""}`;
  };
  return `MCP clients and what they use. ${entries.map(words).join("; ")}.`;
}
