import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { beforeAll, describe, expect, it } from "vitest";

import type { EventPage, RequestList, SessionDetail, SessionList, ShownEvent } from "../../src/console/wire.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { constants } from "../kit/servers/constants.ts";
import { live, send, signIn, type Live, type ConsoleClient } from "../kit/clients/console-client.ts";
import { post, type HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { toolCalls, decisions, writeCall } from "../kit/people/fake-user.ts";
import { STAND_IN, useWorld } from "../kit/world.ts";

/** Tests logs as the page reads them: in pages, live, and through `claude-agents-mcp console`. */

const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
let me: ConsoleClient;
beforeAll(async () => {
  http = await world.http({ args: ["--allow-rules", "Bash(echo:*)"] });
  me = await signIn(http, http.token);
});

const ids = (events: readonly ShownEvent[]) => events.map(({ id }) => id);
const upTo = (last: number, from = 1) => Array.from({ length: last - from + 1 }, (_, at) => from + at);
const page = async (id: string, query: string) => me.get<EventPage>(`sessions/${id}/events?${query}`);
const echo = (words: string) => ({ name: "Bash", input: { command: `echo ${words}`, description: words } });

describe("pages of a log", () => {
  it("a log is read in pages from either side, without a gap and not beyond its ends", async () => {
    const id = await me.start(toolCalls([1, 2, 3].map((n) => echo(String(n)))), world.folder());
    const { lastEventId: last } = await me.end(id);
    expect(last).toBeGreaterThan(10);
    expect(await page(id, "limit=4")).toMatchObject({ lastEventId: last });
    expect(ids((await page(id, "limit=4")).events)).toEqual(upTo(last, last - 3));
    expect(ids((await page(id, "before=5&limit=4")).events)).toEqual([1, 2, 3, 4]);
    expect(ids((await page(id, "before=3&limit=4")).events)).toEqual([1, 2]);
    expect(ids((await page(id, "before=1")).events)).toEqual([]);
    expect(ids((await page(id, "from=3&limit=4")).events)).toEqual([3, 4, 5, 6]);
    expect(ids((await page(id, `before=${String(Number.MAX_SAFE_INTEGER)}&limit=4`)).events)).toEqual(
      upTo(last, last - 3),
    );
    expect(ids((await page(id, `from=${String(last)}`)).events)).toEqual([last]);
    expect(ids((await page(id, `from=${String(last + 1)}`)).events)).toEqual([]);
    expect(ids((await page(id, "from=1&limit=500")).events)).toEqual(upTo(last));
  });

  it("a page of a log has the beginnings of long texts; the whole event is sent on request", async () => {
    const text = `${"A long story. ".repeat(2_000)}The end.`;
    const id = await me.start(scriptTag([{ text }]), world.folder());
    await me.end(id);
    const { events } = await page(id, "from=1&limit=500");
    const cut = events.filter((event) => event.cut === true);
    expect(cut.length).toBeGreaterThan(1);
    for (const event of cut) {
      expect(JSON.stringify(event)).not.toContain("The end.");
      const whole = await me.get<ShownEvent>(`sessions/${id}/events/${String(event.id)}`);
      expect(whole.cut).toBeUndefined();
      expect(JSON.stringify(whole)).toContain("The end.");
      expect({ ...whole, data: {} }).toEqual({ id: event.id, at: event.at, type: event.type, data: {} });
    }
    const { sessions } = await me.get<SessionList>("sessions?limit=1");
    expect(sessions).toHaveLength(1);
    expect(sessions[0]?.title.length).toBeLessThan(200);
  });
});

describe("a live log", () => {
  it("a live log has no gaps and no repeats, however often the stream is cut", async () => {
    const id = await me.start(toolCalls(Array.from({ length: 8 }, (_, n) => echo(String(n)))), world.folder());
    const seen: ShownEvent[] = [];
    let cuts = 0;
    for (let isOver = false; !isOver; cuts++) {
      let got = 0;
      for await (const { data, id: name, kind } of live(
        await me.ask(`live?session=${id}&from=${String(seen.length + 1)}`),
      )) {
        if (kind !== "log") continue;
        expect(name).toBe(String(data.id));
        seen.push(data);
        isOver = data.type === "turn.ended";
        if (isOver || ++got === 3) break;
      }
    }
    const { lastEventId: last } = await me.end(id);
    const { events } = await page(id, "from=1&limit=500");
    expect(cuts).toBeGreaterThan(3);
    expect(last).toBeLessThan(500);
    expect(ids(seen)).toEqual(upTo(seen.length));
    expect(seen).toEqual(events.slice(0, seen.length));
  });

  it("a live log shows partial text before the message is complete", async () => {
    const words = ["潮水", "每天", "涨落两次"];
    const script = [{ text: words, chunkDelayMs: 400, gate: "may-be-written" }];
    const id = await me.start(scriptTag(script), world.folder());
    const partials: string[] = [];
    for await (const { data, kind } of live(await me.ask(`live?session=${id}&from=1`))) {
      if (kind === "session" && data.turnStartedAt !== undefined) world.model.release("may-be-written");
      if (kind === "partial") partials.push(data.text);
      if (kind === "log" && data.type === "turn.ended") break;
    }
    const said = partials.filter((text) => text !== "");
    expect(said.length).toBeGreaterThan(0);
    for (const text of said) expect(words.join("")).toContain(text);
  });

  it("a live stream reports a deleted session, and says goodbye before the server stops", async () => {
    const id = await me.start(scriptTag([{ text: "Short." }]), world.folder());
    await me.end(id);
    const told: Live[] = [];
    for await (const event of live(await me.ask(`live?session=${id}&from=1`))) {
      told.push(event);
      if (event.kind === "log" && event.data.type === "turn.ended") await me.post(`sessions/${id}/delete`);
      if (event.kind === "gone") http.signal("SIGTERM");
    }
    const kinds = told.map(({ kind }) => kind);
    expect(kinds).toContain("gone");
    expect(kinds.at(-1)).toBe("bye");
    expect(await http.exited).toBe(0);
  });
});

/** Starts `claude-agents-mcp console` like a person at a terminal; returns the printed address and token. */
async function startCommand(args: string[], env: Record<string, string>) {
  const command = ["dist/cli/main.js", "console", ...args];
  const child = spawn(process.execPath, command, { env: { PATH: process.env["PATH"] ?? "", ...env }, stdio: "pipe" });
  const exited = once(child, "exit");
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  for await (const line of createInterface({ input: child.stdout })) {
    const [, address = "", token = ""] = /^ +(http\S+)#token=(\S+)$/.exec(line) ?? [];
    if (token === "") continue;
    const end = async () => {
      child.kill("SIGINT");
      await exited;
      return child.exitCode;
    };
    return { origin: new URL(address).origin, address, token, stderr: () => stderr, end };
  }
  throw new Error(`the command has ended: ${stderr}`);
}

/** Leaves a daemon 30 s to start on a busy machine. */
const PATIENT = { ...constants({ daemonStartMs: 30_000 }) };

describe("`claude-agents-mcp console`", () => {
  it("the console shows its user a session of a stdio server and answers its request at any approver's turn", async () => {
    const [cwd, home] = [world.folder(), world.folder()];
    const env = { HOME: home };
    const server = await world.server({ args: ["--approvals", "caller,console:0"], env });
    const { args, tokens } = namedUsers({ ann: { scopes: ["read"] } });
    const others = ["--public-url", "https://agents.example/here", "--oauth", '{"issuer":"https://issuer.example"}'];
    const file = join(cwd, "a");
    const { sessionId } = await server.call("claude_code", { prompt: toolCalls([writeCall(file)]), cwd });
    const { actions } = await server.news(sessionId);
    const started = await startCommand(["--port", "0", ...args, ...others], {
      ...world.model.environment(world.configFolder),
      ...STAND_IN,
      ...PATIENT,
      ...env,
    });
    expect(started.address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\/$/);
    const at = await signIn(started, started.token);
    expect(await at.get("me")).toMatchObject({ principal: "local" });
    const { sessions } = await at.get<SessionList>("sessions");
    expect(sessions).toMatchObject([{ id: sessionId, cwd, status: "waiting_permission", waitsFor: ["caller"] }]);
    const { open } = await at.get<RequestList>("requests");
    // Lists the approvers of the session, not those of the console's own settings.
    const asked = { requestId: actions[0]?.requestId, toolName: "Write", input: { file_path: file } };
    expect(open).toMatchObject([{ ...asked, approvals: ["caller", "console"] }]);
    const answer = await at.post(`sessions/${sessionId}/requests/${open[0]?.requestId ?? ""}`, { decision: "allow" });
    expect(answer.status).toBe(200);
    const done = await server.end(sessionId);
    expect(done).toMatchObject({ status: "idle", result: { result: "Over." } });
    expect(existsSync(file)).toBe(true);
    expect(decisions(done)).toEqual([["allow", "console"]]);
    expect(await at.get("requests")).toMatchObject({ open: [], decided: [{ behavior: "allow", by: "console" }] });
    await at.post(`sessions/${sessionId}/reply`, { prompt: scriptTag([{ text: "From here." }]) });
    await expect.poll(async () => (await server.end(sessionId)).result?.result).toBe("From here.");

    // Serves only the user who has started the console, despite `others`, the settings for many users.
    const again = await send(started, "api/sign-in", post({ token: started.token }));
    expect(again.headers.getSetCookie()).toEqual([
      expect.stringMatching(/; Path=\/console; HttpOnly; SameSite=Strict$/),
    ]);
    await expect(signIn(started, tokens.ann)).rejects.toThrow("401");
    const { port } = new URL(started.origin);
    await expect(startCommand(["--port", port], env)).rejects.toThrow("--port: cannot listen");
    expect(await started.end()).toBe(0);
    expect(started.stderr()).toBe("");
  });

  it("sessions started in the console run in a daemon, and go on when the console ends", async () => {
    const cwd = world.folder();
    const home = world.folder();
    const env = { ...world.model.environment(world.configFolder), ...STAND_IN, ...PATIENT, HOME: home };
    const others = world.daemons();
    const first = await startCommand([], env);
    const at = await signIn(first, first.token);
    const tools = [{ name: "Bash", input: { command: "touch made" } }];
    const id = await at.start(scriptTag([{ tools }, { text: "Afterwards.", gate: "the console has ended" }]), cwd);
    await expect.poll(async () => (await at.get<RequestList>("requests")).open).toHaveLength(1);
    const [request] = (await at.get<RequestList>("requests")).open;
    await at.post(`sessions/${id}/requests/${request?.requestId ?? ""}`, { decision: "allow" });
    await expect.poll(() => existsSync(join(cwd, "made"))).toBe(true);
    expect(world.daemons().filter((pid) => !others.includes(pid))).toHaveLength(1);
    expect(await first.end()).toBe(0);
    world.model.release("the console has ended");
    const second = await startCommand([], env);
    const again = await signIn(second, second.token);
    const status = async () => (await again.get<SessionDetail>(`sessions/${id}`)).status;
    await expect.poll(status, { timeout: 30_000 }).toBe("idle");
    const { events } = await again.get<EventPage>(`sessions/${id}/events`);
    expect(JSON.stringify(events)).toContain("Afterwards.");
    expect((await again.post(`sessions/${id}/reply`, { prompt: scriptTag([{ text: "Again." }]) })).status).toBe(200);
    expect((await again.post("sessions/none/reply", { prompt: "x" })).status).toBe(404);
    await expect.poll(status, { timeout: 30_000 }).toBe("idle");
    expect(await second.end()).toBe(0);
    expect(second.stderr()).toBe("");
  });

  it("without a daemon, the console ends at once with its turns; its audit log has no prompts or answers", async () => {
    const home = world.folder();
    const audit = join(home, "audit.log");
    // Must have no effect: the command does not wait for turns.
    const drain = { CLAUDE_CODE_MCP_DRAIN_MS: "600000" };
    const env = { ...world.model.environment(world.configFolder), ...STAND_IN, ...drain, HOME: home };
    const started = await startCommand(["--daemon", "off", "--audit-log", audit], env);
    const at = await signIn(started, started.token);
    const id = await at.start(scriptTag([{ text: "Whispered.", gate: "never" }]), world.folder());
    await expect.poll(async () => (await at.get<SessionDetail>(`sessions/${id}`)).turnStartedAt).toBeDefined();
    await expect.poll(() => world.processes(home).length).toBeGreaterThan(1);
    await at.post(`sessions/${id}/rename`, { title: "Whispered." });
    await at.post(`sessions/${id}/requests/none`, { decision: "deny", message: "Whispered." });
    await at.post(`sessions/${id}/reply`, { prompt: "Whispered." });
    expect(await started.end()).toBe(0);
    // Filters by `home`, because a daemon of the test before may start a spare meanwhile.
    await expect.poll(() => world.processes(home)).toEqual([]);
    const text = readFileSync(audit, "utf8");
    expect(text).not.toMatch(new RegExp(`Whispered|${started.token}`));
    const entries = text.trim().split("\n");
    expect(entries.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { action: "sign-in", outcome: "ok" },
      { action: "start", sessionId: id, outcome: "ok" },
      { action: "rename", sessionId: id, outcome: "ok" },
      { action: "answer", sessionId: id, requestId: "none", decision: "deny", outcome: "PERMISSION_REQUEST_NOT_FOUND" },
      { action: "reply", sessionId: id, outcome: "SESSION_BUSY" },
    ]);
  });

  it("a console with --daemon work starts sessions in this daemon, which must have the same store", async () => {
    const env = { ...world.model.environment(world.configFolder), ...STAND_IN, HOME: world.folder() };
    const daemon = await world.daemon({ name: "work", env: { HOME: env.HOME } });
    const others = world.daemons();
    const started = await startCommand(["--daemon", "work"], env);
    const at = await signIn(started, started.token);
    const id = await at.start(scriptTag([{ text: "At work." }]), world.folder());
    const client = await daemon.client();
    expect((await client.end(id)).result?.result).toBe("At work.");
    expect(world.daemons()).toEqual(others);
    expect(await started.end()).toBe(0);
    const store = join(env.HOME, "other.db");
    const refused = startCommand(["--daemon", "work", "--store", store], env);
    await expect(refused).rejects.toThrow(`store.db, and this console reads ${store}. Start the console with --store`);
    await daemon.close();
    await expect(startCommand(["--daemon", "work"], env)).rejects.toThrow(
      "--daemon work: no daemon of this name runs. Start it: claude-agents-mcp daemon run --daemon work.",
    );
  });

  it("the console refuses --http and a wrong --port, and says what to do", async () => {
    const env = { HOME: world.folder() };
    await expect(startCommand(["--http", "127.0.0.1:0"], env)).rejects.toThrow("Leave out --http here.");
    await expect(startCommand(["--port", "many"], env)).rejects.toThrow("--port must be a number from 0 to 65535");
  });
});
