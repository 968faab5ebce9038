import { existsSync } from "node:fs";
import { join } from "node:path";

import { beforeAll, describe, expect, it } from "vitest";

import { createConsoleApi } from "../../src/console/api.ts";
import type { RequestList } from "../../src/console/wire.ts";
import { scriptTag } from "../../src/demo/model/script.ts";
import { invalidArgument } from "../../src/domain/error.ts";
import { live, send, signed, signIn, type ConsoleClient } from "../kit/clients/console-client.ts";
import { post, type HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { toolCalls, writeCall } from "../kit/people/fake-user.ts";
import { useWorld } from "../kit/world.ts";

/** Attacks the console's API, by user and session; every attack must fail. */

const users = namedUsers({
  ann: { scopes: ["read", "run", "approve"] },
  bob: { scopes: ["read", "run", "approve"] },
  ron: { scopes: ["read", "run"] },
  rea: { scopes: ["read"] },
});

const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
let ann: ConsoleClient;
let bob: ConsoleClient;
/** Session of Ann with an open request. */
let sessionId: string;
let requestId: string;
beforeAll(async () => {
  http = await world.http({ args: users.args });
  ann = await signIn(http, users.tokens.ann);
  bob = await signIn(http, users.tokens.bob);
  const cwd = world.folder();
  sessionId = await ann.start(toolCalls([writeCall(join(cwd, "a"))]), cwd);
  ({ requestId } = await ann.asked(sessionId));
});

const statusOf = async (answer: Promise<Response>) => (await answer).status;

const OPTIONS = {
  version: "",
  approvers: {},
  cwdOf: () => "/",
  profilesOf: () => ({}),
  allowsBypass: () => false,
  signsIn: true,
};
/** Read from the server, so that new routes are tested too. */
const ROUTES = createConsoleApi(() => ({}) as never, OPTIONS).routes;

/** Valid bodies by path; the rest of the routes take `{}`. */
const BODIES: Readonly<Record<string, object>> = {
  "/sessions": { prompt: "x" },
  "/sessions/:id/reply": { prompt: "x" },
  "/sessions/:id/rename": { title: "x" },
  "/sessions/:id/more-time": { requestId: "x" },
  "/sessions/:id/rewind": { promptId: "x", dryRun: true },
};
const ofSession = (path: string) => path.slice(1).replace(":id", sessionId).replace(":event", "1");

/** Calls each route of the API as `who`; returns the routes with the status of each answer. */
async function askAll(who: ConsoleClient, routes: typeof ROUTES, body: object = {}): Promise<[string, number][]> {
  const answers: [string, number][] = [];
  for (const { method, path } of routes) {
    const at = ofSession(path);
    const answer = method === "GET" ? who.ask(at) : who.post(at, { ...BODIES[path], ...body });
    answers.push([`${method} ${path}`, await statusOf(answer)]);
  }
  const which = `sessions/${sessionId}/requests/${requestId}`;
  answers.push([`POST ${which}`, await statusOf(who.post(which, { decision: "allow", ...body }))]);
  return answers;
}

const withStatus = (answers: [string, number][], status: number) => answers.map(([what]) => [what, status]);

describe("signing in", () => {
  it("sign-in takes a known token and sets a cookie that no script reads and no other site sends", async () => {
    const answer = await send(http, "api/sign-in", post({ token: ` ${users.tokens.ann}\n` }));
    expect(answer.status).toBe(200);
    const [cookie = ""] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/; HttpOnly; SameSite=Strict$/);
    expect(cookie).toMatch(/; Path=\/console; /);
    expect(cookie + JSON.stringify(await answer.json())).not.toContain(users.tokens.ann);
    expect(await ann.get("me")).toMatchObject({ principal: "ann", scopes: ["read", "run", "approve"], signsIn: true });
  });

  it.each([
    ["a wrong token", 401, { token: "ccm_wrong-wrong-wrong-wrong-wrong-wrong-wrong" }],
    ["half a token", 401, { token: users.tokens.ann.slice(0, 20) }],
    ["a token that no header can hold", 401, { token: "ä\nx" }],
    ["no token", 400, {}],
    ["an empty token", 400, { token: " " }],
    ["a token that is not text", 400, { token: { $ne: "" } }],
    ["no object", 400, [null]],
  ])("sign-in with %s is answered with %i, and sets no cookie", async (_, status, body) => {
    const answer = await send(http, "api/sign-in", post(body));
    expect(answer.status).toBe(status);
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(await answer.json()).toMatchObject({
      error: expect.any(String) as string,
      message: expect.any(String) as string,
    });
  });

  it("a request needs a cookie with its own key; a cookie or key alone, changed or of another user gets 401", async () => {
    const changed = (text: string) => text.slice(0, -2) + (text.endsWith("AA") ? "BB" : "AA");
    const again = await signIn(http, users.tokens.ann);
    const halves: [string, Record<string, string>][] = [
      ["nothing", {}],
      ["the cookie alone", { cookie: ann.cookie }],
      ["the key alone", { "x-console-key": ann.key }],
      ["a key of hers of another time", { cookie: ann.cookie, "x-console-key": again.key }],
      ["a key of another user", { cookie: ann.cookie, "x-console-key": bob.key }],
      ["half a key", { cookie: ann.cookie, "x-console-key": ann.key.slice(0, 20) }],
      ["an empty key", { cookie: ann.cookie, "x-console-key": "" }],
      ["a changed key", { cookie: ann.cookie, "x-console-key": changed(ann.key) }],
      ["a changed cookie", { cookie: changed(ann.cookie), "x-console-key": ann.key }],
    ];
    for (const path of ["api/me", "api/sessions", `api/sessions/${sessionId}`, "api/live", "api/requests"]) {
      for (const [what, headers] of halves) {
        const answer = await send(http, path, { headers });
        expect([path, what, answer.status]).toEqual([path, what, 401]);
        await answer.body?.cancel();
      }
    }
    expect(await ann.get("me")).toMatchObject({ principal: "ann" });
    expect(await again.get("me")).toMatchObject({ principal: "ann" });
  });

  it("sign-out takes the cookie away", async () => {
    const answer = await ann.post("sign-out");
    expect(answer.status).toBe(200);
    expect(answer.headers.getSetCookie()).toEqual([expect.stringMatching(/^[\w-]+=; Max-Age=0; Path=\/console$/)]);
  });

  it("the token of a program in a request counts before any cookie", async () => {
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    expect(await statusOf(send(http, "api/me", { headers: bearer(users.tokens.bob) }))).toBe(200);
    const both = await ann.ask("me", bearer(users.tokens.bob));
    expect(await both.json()).toMatchObject({ principal: "bob" });
    expect(await statusOf(ann.ask("me", bearer("ccm_wrong-wrong-wrong-wrong-wrong-wrong")))).toBe(401);
  });
});

describe("pages of other sites", () => {
  it.each(["https://evil.example", "null", "http://127.0.0.1:1"])(
    "a page at %s gets nothing done and reads nothing",
    async (origin) => {
      for (const answer of [
        await ann.ask("sessions", { origin }),
        await ann.post(`sessions/${sessionId}/rename`, { title: "theirs" }, { origin }),
        await send(http, "api/sign-in", post({ token: users.tokens.ann }, { origin })),
      ]) {
        expect(answer.status).toBe(403);
        expect(answer.headers.get("access-control-allow-origin")).toBeNull();
      }
    },
  );

  it.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])(
    "another site cannot send a form as %s",
    async (type) => {
      const answer = await ann.post(`sessions/${sessionId}/rename`, { title: "theirs" }, { "content-type": type });
      expect(answer.status).toBe(415);
      expect(
        await statusOf(send(http, "api/sign-in", post({ token: users.tokens.ann }, { "content-type": type }))),
      ).toBe(415);
    },
  );
});

describe("sessions of another user", () => {
  it("a session of another user is not found on any route", async () => {
    const routes = ROUTES.filter(({ path }) => path.includes(":id"));
    expect(routes.length).toBeGreaterThan(10);
    const answers = await askAll(bob, routes);
    expect(answers).toEqual(withStatus(answers, 404));
    expect(await ann.get(`sessions/${sessionId}`)).toMatchObject({ id: sessionId, status: "waiting_permission" });
  });

  it("a session of another user is in no list and in no live stream", async () => {
    expect(await bob.get("sessions")).toEqual({ sessions: [] });
    expect(await bob.get("requests")).toEqual({ open: [], decided: [] });
    const told: [string, unknown][] = [];
    for await (const { data, kind } of live(await bob.ask(`live?session=${sessionId}`))) {
      told.push([kind, data]);
      if (told.length === 2) break;
    }
    expect(told).toEqual(
      expect.arrayContaining([
        ["gone", { sessionId }],
        ["requests", []],
      ]),
    );
    expect(await ann.asked(sessionId)).toMatchObject({ requestId });
  });
});

describe("a user with too few scopes", () => {
  it("a user without the scope run changes nothing, and one without approve answers nothing", async () => {
    const acting = ROUTES.filter(({ method }) => method === "POST");
    const rea = await askAll(await signIn(http, users.tokens.rea), acting);
    expect(rea).toEqual(withStatus(rea, 403));
    const ron = await signIn(http, users.tokens.ron);
    const cwd = world.folder();
    const own = await ron.start(toolCalls([writeCall(join(cwd, "a"))]), cwd);
    const ask = await ron.asked(own);
    for (const decision of ["allow", "deny", "allow_for_session"]) {
      expect(await statusOf(ron.post(`sessions/${own}/requests/${ask.requestId}`, { decision }))).toBe(403);
    }
    expect(await statusOf(ron.post(`sessions/${own}/cancel`))).toBe(200);
  });
});

describe("requests to the API, and requests of Claude Code", () => {
  it("a request to the API with an unknown or malformed field is refused by name", async () => {
    const acting = ROUTES.filter(({ method }) => method === "POST");
    const answers = await askAll(ann, acting, { surprise: true });
    expect(answers).toEqual(withStatus(answers, 400));
    const answer = await ann.post(`sessions/${sessionId}/rename`, { title: "x", surprise: true });
    expect(await answer.json()).toMatchObject({
      error: "invalid_request",
      message: expect.stringContaining("surprise") as string,
    });
    const noJson = post("{", { ...ann.headers });
    expect(await statusOf(send(http, `api/sessions/${sessionId}/rename`, noJson))).toBe(400);
    for (const path of [
      `sessions/${sessionId}/events?from=0`,
      `sessions/${sessionId}/events?limit=501`,
      `sessions/${sessionId}/events/999999`,
      "sessions?status=asleep",
      "sessions?before=yesterday",
      "live?from=x",
    ]) {
      expect([path, await statusOf(ann.ask(path))]).toEqual([path, 400]);
    }
  });

  it("a request of Claude Code is answered once; a second answer is told who was first", async () => {
    const cwd = world.folder();
    const id = await ann.start(toolCalls([writeCall(join(cwd, "a"))]), cwd);
    const ask = await ann.asked(id);
    const path = `sessions/${id}/requests/${ask.requestId}`;
    const both = await Promise.all([ann.post(path, { decision: "allow" }), ann.post(path, { decision: "deny" })]);
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
    const late = await ann.post(path, { decision: "deny" });
    expect(await late.json()).toMatchObject({ error: "already_answered", by: "console" });
    await ann.end(id);
  });

  it("a request of Claude Code runs as changed by a program without an open stream", async () => {
    const cwd = world.folder();
    const [first, changed] = [join(cwd, "a"), join(cwd, "b")];
    const id = await ann.start(toolCalls([writeCall(first)]), cwd);
    const asked = async () => (await ann.get<RequestList>("requests")).open.find(({ sessionId: of }) => of === id);
    await expect.poll(asked).toBeDefined();
    const ask = await asked();
    const updatedInput = { ...ask?.input, file_path: changed };
    const answer = await ann.post(`sessions/${id}/requests/${ask?.requestId ?? ""}`, {
      decision: "allow",
      updatedInput,
    });
    expect([answer.status, await answer.json()]).toEqual([200, { ok: true, decision: "allow" }]);
    await ann.end(id);
    expect([existsSync(first), existsSync(changed)]).toEqual([false, true]);
  });

  it("a start that is sent twice with the same key starts one session", async () => {
    const body = { prompt: scriptTag([{ text: "Once." }]), cwd: world.folder(), idempotencyKey: "only-once" };
    const ids = await Promise.all([1, 2].map(async () => (await ann.post("sessions", body)).json()));
    expect(ids[0]).toEqual(ids[1]);
  });
});

it("a browser stays signed in after a restart, and not at a server that does not know its token", async () => {
  const same = await world.http({ args: users.args });
  const port = (server: HttpServer) => new URL(server.origin).port;
  const cookie = ann.cookie.replace(port(http), port(same));
  expect(await signed(same, { ...ann, cookie }).get("me")).toMatchObject({ principal: "ann" });
  const other = await world.http();
  const elsewhere = signed(other, { ...ann, cookie: ann.cookie.replace(port(http), port(other)) });
  expect(await statusOf(elsewhere.ask("me"))).toBe(401);
  await Promise.all([same.close(), other.close()]);
});

it("the console names its user even if the folder that sessions begin in is gone", async () => {
  const cwdOf = () => {
    throw invalidArgument("cwd", "is gone.");
  };
  const { routes } = createConsoleApi(() => ({}) as never, { ...OPTIONS, cwdOf });
  const me = routes.find(({ path }) => path === "/me");
  const caller = { principal: "ann", scopes: ["read"] } as const;
  const told = await me?.handle({ caller, params: {}, query: new URLSearchParams(), body: undefined });
  expect(told).toMatchObject({ principal: "ann" });
  expect(told).not.toHaveProperty("cwd");
});
