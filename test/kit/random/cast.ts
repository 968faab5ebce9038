import { createHash } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";

import { scriptTag } from "../../../src/demo/model/script.ts";
import { INITIALIZE, post, type HttpConnection, type HttpServer } from "../servers/http-server.ts";
import type { Answer } from "../clients/connection.ts";
import type { World } from "../world.ts";
import { at, type Target } from "./send.ts";
import { CALLERS, type CallerName } from "./calls.ts";
import type { Forbidden } from "./judge.ts";

/**
 * The callers and their sessions. The folder of the sessions exists only while `replaceEnded()` creates them: every later start or
 * prompt is refused at the folder check, so no random call starts a Claude Code.
 */

/** Unlike any other text, so that `Forbidden` recognizes a secret anywhere. */
const SECRETS = {
  PLANTED_API_KEY: "planted-7f3a-key-of-the-server",
  CLAUDE_CODE_MCP_RESUME_SECRET: "planted-7f3a-resume-secret",
};
const TOKENS: Readonly<Record<CallerName, string>> = {
  operator: "ccm_7f3a-of-the-operator-0123456789-0123456789",
  confined: "ccm_7f3a-of-the-confined-0123456789-0123456789",
  reader: "ccm_7f3a-of-the-reader-01234567890-0123456789",
};
/** Words that are allowed only in answers to their own caller. */
const WORDS = { operator: "words-of-7f3a-operator", confined: "words-of-7f3a-confined" };
/** Longest wait of a call, ms; also the wait of a call without `waitMs`. */
const WAIT_MS = 1_000;

type Owner = keyof typeof WORDS;

interface OwnSessions {
  asking: string;
  request: string;
  idle: string;
  closed: string;
}

export class Cast {
  readonly server: HttpServer;
  readonly #folder: string;
  readonly #own: Record<Owner, OwnSessions>;
  readonly #clients: Record<Owner, HttpConnection>;
  readonly #sessions: Record<CallerName, string> = { operator: "", confined: "", reader: "" };
  /** All ids that ever existed: a closed session still belongs to its caller. */
  readonly #ids: Record<Owner, Set<string>> = { operator: new Set(), confined: new Set() };

  private constructor(server: HttpServer, folder: string, clients: Record<Owner, HttpConnection>) {
    const nothing = { asking: "", request: "", idle: "", closed: "" };
    this.server = server;
    this.#folder = folder;
    this.#clients = clients;
    this.#own = { operator: { ...nothing }, confined: { ...nothing } };
  }

  static async start(world: World): Promise<Cast> {
    const folder = world.folder();
    const digest = (name: CallerName) => createHash("sha256").update(TOKENS[name]).digest("hex");
    const principals = {
      confined: { tokenSha256: digest("confined"), scopes: ["read", "run", "approve"], allowDirs: [folder] },
      reader: { tokenSha256: digest("reader"), scopes: ["read"], allowDirs: [folder] },
    };
    const wide = ["--toolsets", "all", "--allow-disk-resume", "--allow-sensitive-session-details"];
    const limits = ["--rate-limit", "1000000", "--max-live", "5", "--max-wait-ms", String(WAIT_MS)];
    const confining = ["--allow-dir", folder, "--principals", JSON.stringify(principals)];
    const args = [...wide, ...limits, ...confining];
    const server = await world.http({ token: TOKENS.operator, env: SECRETS, args });
    const clients = { operator: await server.connect(), confined: await server.connect("modern", TOKENS.confined) };
    return new Cast(server, folder, clients);
  }

  /** Replaces the sessions that earlier calls have ended. */
  async replaceEnded(): Promise<void> {
    mkdirSync(this.#folder, { recursive: true });
    await Promise.all((["operator", "confined"] as const).map(async (owner) => this.#gatherOf(owner)));
    rmSync(this.#folder, { recursive: true });
    for (const name of CALLERS) await this.reconnect(name);
  }

  target(caller: CallerName): Target {
    const mine = caller === "confined" ? "confined" : "operator";
    const [own, other] = [this.#own[mine], this.#own[mine === "operator" ? "confined" : "operator"]];
    const sessions = {
      session: this.#sessions[caller],
      theirSession: this.#sessions[caller === "reader" ? "operator" : "reader"],
    };
    const place = { ...own, theirs: other.asking, theirRequest: other.request, ...sessions, folder: this.#folder };
    return { url: this.server.url, token: TOKENS[caller], place };
  }

  forbidden(caller: CallerName): Forbidden {
    const owners = (["operator", "confined"] as const).filter((owner) => owner !== caller);
    const others = owners.flatMap((owner) => [WORDS[owner], ...this.#ids[owner]]);
    return { ever: this.secrets, others };
  }

  /** True if `text` has words that only `caller` may see. */
  isOwn(caller: CallerName, text: string): boolean {
    return caller !== "reader" && text.includes(WORDS[caller]);
  }

  get secrets(): string[] {
    return [...Object.values(SECRETS), ...Object.values(TOKENS)];
  }

  async #gatherOf(owner: Owner): Promise<void> {
    const own = this.#own[owner];
    const status = await this.#statuses(owner);
    if (status(own.closed) !== "cancelled") {
      own.closed = await this.#begin(owner, [{ text: WORDS[owner] }]);
      await this.#clients[owner].call("claude_code_session", { action: "cancel", sessionId: own.closed });
    }
    if (status(own.idle) !== "idle") {
      own.idle = await this.#begin(owner, [{ text: WORDS[owner] }]);
      await this.#until(owner, own.idle, "idle");
    }
    if (status(own.asking) !== "waiting_permission") {
      const input = { command: `touch ${WORDS[owner]}`, description: "requests" };
      own.asking = await this.#begin(owner, [{ tools: [{ name: "Bash", input }] }, { text: WORDS[owner] }]);
      const { actions } = await this.#until(owner, own.asking, "waiting_permission");
      own.request = actions[0]?.requestId ?? "";
    }
  }

  async #until(owner: Owner, sessionId: string, status: string): Promise<Answer> {
    const poll = { action: "poll", sessionId, waitMs: WAIT_MS };
    for (;;) {
      const answer = await this.#clients[owner].call("claude_code_check", poll);
      if (answer.status === status) return answer;
    }
  }

  async #statuses(owner: Owner): Promise<(id: string) => string | undefined> {
    const { sessions } = await this.#clients[owner].call("claude_code_session", { action: "list", limit: 200 });
    return (id) => sessions.find(({ sessionId }) => sessionId === id)?.status;
  }

  async #begin(owner: Owner, script: Parameters<typeof scriptTag>[0]): Promise<string> {
    const prompt = `${WORDS[owner]} ${scriptTag(script)}`;
    const args = { prompt, cwd: this.#folder, permissionRequestTimeoutMs: 3_600_000 };
    const { sessionId } = await this.#clients[owner].call("claude_code", args);
    this.#ids[owner].add(sessionId);
    return sessionId;
  }

  /** Reconnects like a client of the 2025 era whose session is gone: with a new MCP session. */
  async reconnect(name: CallerName): Promise<void> {
    const authorization = `Bearer ${TOKENS[name]}`;
    const begun = await this.server.fetch("/mcp", post(INITIALIZE, { authorization }));
    await begun.text();
    this.#sessions[name] = begun.headers.get("mcp-session-id") ?? "";
  }

  /** Returns the operator's tools, as listed. */
  async tools<T>(): Promise<T> {
    const listed: unknown = await this.#clients.operator.client.listTools();
    return at(listed, "tools") as T;
  }
}
