import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, describe, expect, it } from "vitest";

import { createConsoleApi } from "../../src/console/api.ts";
import type { RequestList } from "../../src/console/wire.ts";
import { send, signIn } from "../kit/clients/console-client.ts";
import { overHttp } from "../kit/clients/tasks-client.ts";
import { decisions } from "../kit/people/fake-user.ts";
import { LinkUser, LONG, longWrite, openLink, openPage, pageOf, problemOf } from "../kit/people/link-user.ts";
import { constants } from "../kit/servers/constants.ts";
import { post, type HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { readWholeLog } from "../kit/sessions/one-turn.ts";
import { useWorld } from "../kit/world.ts";

/** Links to requests that no form holds, and attacks on such links, which must all fail. */

const ALL = ["read", "run", "approve"];
const users = namedUsers({
  ann: { scopes: ALL, attended: true },
  bob: { scopes: ALL, attended: true },
  pat: { scopes: ALL },
});

const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
let auditLog: string;
beforeAll(async () => {
  auditLog = join(world.folder(), "audit.jsonl");
  const args = [...users.args, "--audit-log", auditLog, "--log-level", "debug", "--caller-approves", "edits"];
  http = await world.http({ args });
});

/** Begins a turn of Ann whose request no form holds. */
async function ask(server = http, user = new LinkUser(), token = users.tokens.ann) {
  const client = await user.connect(server, { token });
  const file = join(world.folder(), "long.txt");
  const call = client.call("claude_code", { prompt: longWrite(file), cwd: join(file, ".."), waitMs: 40_000 });
  return { user, client, file, call, url: await user.link() };
}

describe("a request that no form holds", () => {
  it.each(["modern", "legacy"] as const)(
    "the page of a link shows all of it, and the waiting call goes on with the answer given there: %s client",
    async (era) => {
      const user = new LinkUser();
      const client = await user.connect(http, { era, token: users.tokens.ann });
      const file = join(world.folder(), "long.txt");
      const call = client.call("claude_code", { prompt: longWrite(file), cwd: join(file, ".."), waitMs: 40_000 });
      const page = await openPage(http, await user.link());
      const [asked] = user.seen;
      expect(asked?.mode).toBe("url");
      expect(asked?.message).toMatch(
        /^Write long\.txt \(300 lines\)\nThe page shows all of it and takes your answer\./,
      );
      const { request } = await page.read();
      expect(request).toMatchObject({ toolName: "Write", type: "permission", input: { content: LONG } });
      // The acceptance of the client opens the page, and allows nothing.
      expect(existsSync(file)).toBe(false);
      expect((await page.answer({ decision: "allow" })).status).toBe(200);
      const answer = await call;
      expect(answer).toMatchObject({ status: "idle", result: { result: "Over." } });
      expect(readFileSync(file, "utf8")).toBe(LONG);
      expect(decisions(await readWholeLog(client, answer.sessionId))).toEqual([["allow", "user"]]);
      expect(user.seen).toHaveLength(1);
      expect(user.completed).toEqual(era === "legacy" ? [asked?.elicitationId] : []);
    },
  );

  it("a task asks by a link, is working while the page is open, and completes with the answer given there", async () => {
    const elicitation = { form: {}, url: {} };
    const extensions = { "io.modelcontextprotocol/tasks": {} };
    const client = overHttp(http, users.tokens.ann).declaring({ elicitation, extensions });
    const cwd = world.folder();
    const { task } = await client.begin("claude_code", { prompt: longWrite(join(cwd, "long.txt")), cwd });
    const { inputRequests = {} } = await client.until(task, "input_required");
    const [[key, asked] = ["", undefined]] = Object.entries(inputRequests);
    expect(asked?.params.mode).toBe("url");
    const again = await client.get(task);
    expect(again.inputRequests).toEqual(inputRequests);
    await client.result("tasks/update", { taskId: task.taskId, inputResponses: { [key]: { action: "accept" } } });
    expect(await client.get(task)).toMatchObject({ status: "working" });
    const page = await openPage(http, asked?.params.url ?? "");
    await page.answer({ decision: "deny", message: "Too long." });
    const done = await client.until(task, "completed");
    expect(done.result?.structuredContent).toMatchObject({ result: { result: "Over." } });
    expect(existsSync(join(cwd, "long.txt"))).toBe(false);
  });

  it("declining a link denies the request, and closing it hands the request to the caller", async () => {
    const user = new LinkUser();
    user.does = async () => sleep(400, user.seen.length === 1 ? "decline" : "cancel");
    const { call, client, file } = await ask(http, user);
    const declined = await call;
    expect(declined).toMatchObject({ status: "idle" });
    expect(existsSync(file)).toBe(false);
    expect(decisions(await readWholeLog(client, declined.sessionId))).toEqual([["deny", "user"]]);
    const reply = { sessionId: declined.sessionId, prompt: longWrite(file), waitMs: 40_000 };
    const closed = await client.call("claude_code_reply", reply);
    expect(closed).toMatchObject({ status: "waiting_permission" });
    await client.call("claude_code_session", { action: "close", sessionId: declined.sessionId });
  });

  it("the form stays for a client that opens no URLs, without a console, and without an address for other machines", async () => {
    const plain = await world.http({ args: ["--no-console"] });
    const open = await world.http({ args: ["--http", "0.0.0.0:0"] });
    const local = { token: open.token, url: open.url.replace("0.0.0.0", "127.0.0.1") };
    for (const [index, server] of [http, plain, local].entries()) {
      const user = new LinkUser();
      user.does = async () => sleep(400, "decline");
      const client = await user.connect(server, { opensUrls: index > 0 });
      const cwd = world.folder();
      await client.call("claude_code", { prompt: longWrite(join(cwd, "long.txt")), cwd, waitMs: 40_000 });
      expect(user.seen.map(({ mode }) => mode)).toEqual(["form"]);
      expect(user.seen[0]?.message).toMatch(/\[cut: \d+ characters are not shown\]/);
      await client.close();
    }
  });

  it("a short request stays a form at a client that opens URLs", async () => {
    const user = new LinkUser();
    user.does = async () => sleep(400, "decline");
    const client = await user.connect(http, { token: users.tokens.ann });
    const cwd = world.folder();
    const prompt = longWrite(join(cwd, "a")).replace(JSON.stringify(LONG), '"hello"');
    await client.call("claude_code", { prompt, cwd, waitMs: 40_000 });
    expect(user.seen.map(({ mode }) => mode)).toEqual(["form"]);
  });

  it("an answer by a client that is not attended stays within `--caller-approves`, as in its forms", async () => {
    const { call, file, url } = await ask(http, new LinkUser(), users.tokens.pat);
    const page = await openPage(http, url);
    const elsewhere = { file_path: join(world.folder(), "elsewhere.txt"), content: "x" };
    expect(await problemOf(page.answer({ decision: "allow", updatedInput: elsewhere }))).toEqual([403, "not_allowed"]);
    expect((await page.answer({ decision: "allow" })).status).toBe(200);
    await call;
    expect(existsSync(file)).toBe(true);
    expect(existsSync(elsewhere.file_path)).toBe(false);
  });
});

describe("attacks on a link", () => {
  it("a link used twice opens once, also at the same time", async () => {
    const { call, url } = await ask();
    const opened = await Promise.all(Array.from({ length: 5 }, async () => openLink(http, url)));
    expect(opened.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 410, 410, 410, 410]);
    expect(opened.filter(({ status }) => status === 410).flatMap(({ headers }) => headers.getSetCookie())).toEqual([]);
    expect(await problemOf(openLink(http, url))).toEqual([410, "link_used"]);
    const page = await pageOf(
      http,
      opened.find(({ status }) => status === 200)!,
    );
    await page.answer({ decision: "deny" });
    expect(await call).toMatchObject({ status: "idle" });
  });

  it("another user, signed in or with a token, cannot open a link, and does not use it up", async () => {
    const { call, url } = await ask();
    const bob = await signIn(http, users.tokens.bob);
    const bearer = { authorization: `Bearer ${users.tokens.bob}` };
    for (const headers of [bob.headers, bearer])
      expect(await problemOf(openLink(http, url, headers))).toEqual([403, "link_foreign"]);
    const page = await openPage(http, url);
    await page.answer({ decision: "deny" });
    expect(await call).toMatchObject({ status: "idle" });
  });

  it("a link and its page are dead after the answer", async () => {
    const { call, url, user } = await ask();
    const page = await openPage(http, url);
    await page.answer({ decision: "deny" });
    const { sessionId } = await call;
    expect(await problemOf(page.ask())).toEqual([410, "link_answered"]);
    expect(await problemOf(page.answer({ decision: "allow" }))).toEqual([409, "already_answered"]);
    // An unused link of a request that was answered in the console.
    const ann = await signIn(http, users.tokens.ann);
    const client = await user.connect(http, { token: users.tokens.ann });
    const file = join(world.folder(), "long.txt");
    const next = client.call("claude_code_reply", { sessionId, prompt: longWrite(file), waitMs: 40_000 });
    const unused = await user.link(2);
    const { requestId } = await ann.asked(sessionId);
    await ann.post(`sessions/${sessionId}/requests/${requestId}`, { decision: "deny" });
    await next;
    expect(await problemOf(openLink(http, unused))).toEqual([410, "link_answered"]);
  });

  it("a guessed or changed link is unknown, sets no cookie, and counts as a wrong token", async () => {
    const { call, url } = await ask();
    const base = url.replace(/#.*/, "#link=");
    const guesses = [
      `${url}A`,
      url.slice(0, -1),
      base,
      ...[16, 32].map((size) => base + randomBytes(size).toString("base64url")),
    ];
    for (const guess of guesses) {
      const answer = await openLink(http, guess);
      expect(answer.headers.getSetCookie()).toEqual([]);
      expect(await problemOf(Promise.resolve(answer))).toEqual([404, "link_unknown"]);
    }
    for (const body of [{}, { link: 1 }, [null], { link: { $ne: "" } }])
      expect(await problemOf(send(http, "api/links", post(body)))).toEqual([404, "link_unknown"]);
    expect(readFileSync(auditLog, "utf8")).toContain('"outcome":"unauthenticated"');
    const page = await openPage(http, url);
    await page.answer({ decision: "deny" });
    await call;
  });

  it("cookie and key of a page open its request alone, and only together", async () => {
    const [one, other] = [await ask(), await ask()];
    const [mine, foreign] = [await openPage(http, one.url), await openPage(http, other.url)];
    const { cookie, id, key } = mine;
    const wrong: [string, Record<string, string>][] = [
      [id, { cookie }],
      [id, { "x-request-key": key }],
      [id, { cookie, "x-request-key": foreign.key }],
      [id, { cookie: foreign.cookie, "x-request-key": foreign.key }],
      [foreign.id, { cookie, "x-request-key": key }],
    ];
    for (const [at, headers] of wrong) {
      expect(await problemOf(send(http, `api/links/${at}`, { headers }))).toEqual([404, "link_unknown"]);
      expect(await problemOf(send(http, `api/links/${at}`, post({ decision: "allow" }, headers)))).toEqual([
        404,
        "link_unknown",
      ]);
    }
    const { requestId, sessionId } = (await mine.read()).request;
    const options = {
      version: "",
      approvers: {},
      cwdOf: () => "/",
      profilesOf: () => ({}),
      allowsBypass: () => false,
      signsIn: true,
    };
    const paths = createConsoleApi(() => ({}) as never, options).routes.map(({ method, path }) => [
      method,
      path.replace(":id", sessionId),
    ]);
    const renamed = cookie.replace("-request=", "=");
    for (const [method, path] of [
      ...paths,
      ["POST", `/sessions/${sessionId}/requests/${requestId}`],
      ["GET", "/live"],
    ]) {
      const headers = { cookie: `${cookie}; ${renamed}`, "x-console-key": key, "x-request-key": key };
      const init = method === "POST" ? post({ decision: "allow" }, headers) : { headers };
      expect([path, (await send(http, `api${path!}`, init)).status]).toEqual([path, 401]);
    }
    for (const page of [mine, foreign]) await page.answer({ decision: "deny" });
    await Promise.all([one.call, other.call]);
  });

  it("an expired link opens nothing", async () => {
    const short = await world.http({ args: users.args, env: constants({ requestLinkMs: 1 }) });
    const { call, url } = await ask(short);
    expect(await problemOf(openLink(short, url))).toEqual([410, "link_expired"]);
    const ann = await signIn(short, users.tokens.ann);
    const { open } = await ann.get<RequestList>("requests");
    for (const { requestId, sessionId } of open)
      await ann.post(`sessions/${sessionId}/requests/${requestId}`, { decision: "deny" });
    await call;
  });

  it("the secret of a link is in no log, its cookie is out of reach for scripts, and nothing is cached", async () => {
    const { call, url } = await ask();
    const opened = await openLink(http, url);
    const [cookie = ""] = opened.headers.getSetCookie();
    expect(cookie).toMatch(/; Path=\/console\/api\/links\/[\w-]+; HttpOnly; SameSite=Strict$/);
    expect(opened.headers.get("cache-control")).toBe("no-store");
    expect(opened.headers.get("referrer-policy")).toBe("no-referrer");
    const text = (await opened.clone().text()) + cookie;
    const secret = new URL(url).hash.replace("#link=", "");
    expect(secret).toHaveLength(43);
    for (const where of [text, http.stderr(), http.stdout(), readFileSync(auditLog, "utf8")])
      expect(where).not.toContain(secret);
    await (await pageOf(http, opened)).answer({ decision: "deny" });
    await call;
  });
});
