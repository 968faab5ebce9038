import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request as forward } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { scriptTag } from "../../src/demo/model/script.ts";
import type { Connection } from "../kit/clients/connection.ts";
import type { HttpConnection, HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { storedEvents } from "../kit/store/stored.ts";
import { useWorld, type World } from "../kit/world.ts";

const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
const homeOf = (world: World) => join(world.configFolder, "..");

const isExit = ({ type }: { readonly type: string }) => type === "process.exited";

/** Writes a file as an operator keeps a secret. */
function secretFile(world: World, value: string): string {
  const file = join(world.folder(), "secret");
  writeFileSync(file, `${value}\n`, { mode: 0o600 });
  return file;
}

async function profilesFor({ client }: Connection): Promise<unknown> {
  const uri = "claude-code://profiles";
  const { contents } = await client.readResource({ uri });
  return JSON.parse(z.tuple([z.object({ uri: z.literal(uri), text: z.string() }).loose()]).parse(contents)[0].text);
}

describe("two accounts at once", () => {
  const world = useWorld();
  const tokenOf = (name: string) => `sk-ant-oat01-of-the-${name}-0123456789`;
  /** Credentials that the model received, by session. */
  const seen = new Map<string, Set<string>>();
  const relay = createServer((request, response) => {
    const { authorization = "", "x-api-key": key = "", "x-claude-code-session-id": id = "" } = request.headers;
    seen.set(String(id), new Set([...(seen.get(String(id)) ?? []), authorization + String(key)]));
    const { headers, method = "GET", url = "/" } = request;
    const sent = forward(`${world.model.url}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    sent.once("error", () => response.destroy());
    request.pipe(sent);
  });
  beforeAll(async () => once(relay.listen(0, "127.0.0.1"), "listening"));
  afterAll(() => {
    relay.close();
    relay.closeAllConnections();
  });

  it("an option of `claude_code`, `profile`: each session pays with its own, over the client's key and after a restart", async () => {
    const folders = { day: world.folder(), night: world.folder() };
    const env = { ANTHROPIC_BASE_URL: `http://127.0.0.1:${String((relay.address() as AddressInfo).port)}` };
    const profileOf = (name: keyof typeof folders) => ({
      claudeConfigDir: folders[name],
      environment: {
        CLAUDE_CODE_OAUTH_TOKEN: secretFile(world, tokenOf(name)),
        PLAIN: secretFile(world, `pin-of-${name}`),
      },
      options: { env, allowedTools: ["Bash"] },
    });
    const settings = { profiles: { day: profileOf("day"), night: profileOf("night") } };
    const client = await world.shared({ settings });
    const run = async (profile: keyof typeof folders) => {
      const prompt = scriptTag([bash("env"), { text: "Over." }]);
      const given = { prompt, cwd: world.folder(), advanced: { profile }, waitMs: 40_000 };
      const { result, sessionId } = await client.call("claude_code", given);
      expect(result).toMatchObject({ result: "Over.", isError: false });
      return [profile, sessionId] as const;
    };
    const sessions = await Promise.all([run("day"), run("night")]);
    const [killed] = world.daemons();
    process.kill(killed ?? 0, "SIGKILL");
    const next = await world.shared({ settings });
    // The next daemon starts a process for `day`, and attaches to the process of `night`.
    const isOfDay = ({ command }: { command: string }) => command.includes(sessions[0][1]);
    for (const { pid } of world.processes().filter(isOfDay)) process.kill(pid, "SIGKILL");
    const exits = async () => (await storedEvents(homeOf(world), sessions[0][1])).filter(isExit);
    await expect.poll(exits, { timeout: 30_000 }).toHaveLength(1);
    for (const [, sessionId] of sessions) {
      const prompt = scriptTag([bash("env"), { text: "Again." }]);
      const { result } = await next.call("claude_code_reply", { sessionId, prompt, waitMs: 40_000 });
      expect(result).toMatchObject({ result: "Again.", isError: false });
    }
    for (const [profile, sessionId] of sessions) {
      expect([...(seen.get(sessionId) ?? [])]).toEqual([`Bearer ${tokenOf(profile)}`]);
      const [project = ""] = readdirSync(join(folders[profile], "projects"));
      expect(existsSync(join(folders[profile], "projects", project, `${sessionId}.jsonl`))).toBe(true);
      // Claude Code itself keeps the token from shells.
      const log = (await storedEvents(homeOf(world), sessionId)).map(({ event }) => event).join("\n");
      expect(log.split("PLAIN=[masked]")).toHaveLength(3);
    }
    const kept = readdirSync(homeOf(world), { recursive: true, withFileTypes: true });
    const files = kept.filter((entry) => entry.isFile() && /store\.db|\.log$/.test(entry.name));
    expect(files.length).toBeGreaterThan(1);
    const text = files.map(({ name, parentPath }) => readFileSync(join(parentPath, name), "latin1")).join("\n");
    for (const secret of ["day", "night"].flatMap((name) => [tokenOf(name), `pin-of-${name}`])) {
      expect(text).not.toContain(secret);
    }
  });
});

describe("profiles of users over HTTP", () => {
  const world = useWorld({ agent: "stand-in" });
  const user = { scopes: ["read", "run", "approve"] };
  let files: Record<"day" | "night", string>;
  let folder: string;
  let server: HttpServer;
  let ada: HttpConnection;
  let bob: HttpConnection;

  /** Connects to a server on which ada may use the profiles `names`. */
  async function serverWith(names: readonly string[]) {
    const own = { ...user, claudeConfigDir: world.folder() };
    const { args, tokens } = namedUsers({ ada: { ...own, profiles: names }, bob: user });
    const key = { ANTHROPIC_BASE_URL: world.model.url, ANTHROPIC_API_KEY: "the-key-of-the-night" };
    const night = {
      description: "Cheap work at night.",
      model: "haiku",
      claudeConfigDir: folder,
      environment: { NIGHT_PIN: files.night },
      options: { env: { ...key, WHO: "night" }, allowedTools: ["Bash"] },
      rules: { deny: ["Bash(touch *)"] },
      budgetUsdPerDay: 5,
    };
    const profiles = JSON.stringify({ night, day: { environment: { DAY_PIN: files.day } } });
    const started = await world.http({
      args: [
        ...args,
        "--profiles",
        profiles,
        "--caller-approves",
        "none",
        "--allow-rules",
        "Bash(echo *)",
        "--allow-disk-resume",
      ],
    });
    const connected = await started.connect("modern", tokens.ada);
    return { started, ada: connected, tokens };
  }

  beforeAll(async () => {
    files = { day: secretFile(world, "pin-of-the-day"), night: secretFile(world, "pin-of-the-night") };
    folder = world.folder();
    const { started, tokens, ...first } = await serverWith(["night"]);
    [server, ada, bob] = [started, first.ada, await started.connect("modern", tokens.bob)];
  });

  const running = (commands: readonly string[]) => scriptTag([...commands.map(bash), { text: "Over." }]);
  const start = (commands: readonly string[], advanced: object) => ({
    prompt: running(commands),
    cwd: world.folder(),
    waitMs: 40_000,
    advanced,
  });

  it("a user sees and may use the profiles of its entry alone, and learns of no others", async () => {
    const night = { name: "night", description: "Cheap work at night.", model: "haiku" };
    expect(await profilesFor(ada)).toEqual({ profiles: [{ ...night, hasBudget: true, hasReserve: false }] });
    expect(await profilesFor(bob)).toEqual({ profiles: [] });
    expect(await profilesFor(await server.connect())).toMatchObject({ profiles: [{ name: "night" }, { name: "day" }] });
    const refused = async (connection: HttpConnection, profile: string) =>
      connection.refusal("claude_code", start([], { profile }));
    const [ofAda, ofBob] = ["Name one of night", "There is none for you: leave it out"];
    const failure = (profile: string, advice: string) => {
      const text = `profile: there is no profile "${profile}". ${advice}. See claude-code://profiles.`;
      return { code: "INVALID_ARGUMENT", text: expect.stringContaining(text) as string };
    };
    for (const profile of ["day", "nothing", "constructor"]) {
      expect(await refused(ada, profile)).toEqual(failure(profile, ofAda));
    }
    for (const profile of ["night", "nothing"]) expect(await refused(bob, profile)).toEqual(failure(profile, ofBob));
  });

  it("an option of `claude_code`, `profile`: options, rules and folder of the operator hold for a user, also in a fork", async () => {
    const refused = await ada.refusal("claude_code", start([], { profile: "night", env: { WHO: "ada" } }));
    expect(refused).toMatchObject({ code: "PERMISSION_DENIED" });
    const given = start(["env > seen", "touch made"], { profile: "night" });
    const { sessionId, warnings, result } = await ada.call("claude_code", given);
    expect(warnings).toBeUndefined();
    expect(result).toMatchObject({ result: "Over.", isError: false });
    const fork = { sessionId, prompt: running(["env > forked"]), forkSession: true, waitMs: 40_000 };
    expect(await ada.call("claude_code_reply", { ...fork, profile: "night" })).toMatchObject({
      result: { isError: false },
    });
    for (const file of ["seen", "forked"]) {
      const seen = readFileSync(join(given.cwd, file), "utf8").split("\n");
      const own = ["WHO=night", `CLAUDE_CONFIG_DIR=${folder}`, "NIGHT_PIN=pin-of-the-night"];
      expect(seen).toEqual(expect.arrayContaining(own));
      expect(seen).not.toContain("ANTHROPIC_API_KEY=scripted-model");
    }
    expect(existsSync(join(given.cwd, "made"))).toBe(false);
    for (const forkSession of [false, true]) {
      const { text } = await ada.refusal("claude_code_reply", { ...fork, forkSession, profile: "day" });
      expect(text).toContain(
        "profile: the session was started with the profile night, and a session never changes its",
      );
    }
    const gone = await (await serverWith([])).ada.refusal("claude_code_reply", { ...fork, forkSession: false });
    expect(gone.text).toContain(
      "the session was started with the profile night, which this server does not have for its",
    );
  });

  it("an option of `claude_code_reply`, `profile`: a transcript in the folder of a profile goes on with the profile only", async () => {
    const operator = await server.connect();
    const given = { ...start([], { profile: "night" }), verify: ["echo $NIGHT_PIN"] };
    const { sessionId, result } = await operator.call("claude_code", given);
    expect(result).toMatchObject({ verification: { status: "passed" } });
    const log = (await storedEvents(homeOf(world), sessionId)).map(({ event }) => event).join("\n");
    expect(log).toContain('"tail":"[masked]"');
    expect(log).not.toContain("pin-of-the-night");
    await operator.call("claude_code_session", { action: "delete", sessionId });
    const reply = { sessionId, prompt: running([]), waitMs: 40_000 };
    expect(await operator.refusal("claude_code_reply", reply)).toMatchObject({ code: "SESSION_NOT_FOUND" });
    const again = await operator.call("claude_code_reply", { ...reply, profile: "night" });
    expect(again.result).toMatchObject({ result: "Over.", isError: false });
    const { usage } = await operator.call("claude_code_session", { action: "usage", sessionId });
    expect(usage).toMatchObject({ profile: "night" });
  });

  it("a profile with a file that others can read is refused, and only the operator learns of the file", async () => {
    chmodSync(files.night, 0o644);
    const { text } = await ada.refusal("claude_code", start([], { profile: "night" }));
    expect(text).toContain("profile: night cannot be used, because its file with NIGHT_PIN cannot be read.");
    expect(text).not.toContain(files.night);
    const operator = await server.connect();
    const refused = await operator.refusal("claude_code", start([], { profile: "night" }));
    expect(refused.text).toContain(`${files.night} is readable by other users. Run chmod 600 on it`);
    writeFileSync(files.day, "  \n");
    const empty = await operator.refusal("claude_code", start([], { profile: "day" }));
    expect(empty.text).toContain("its file with DAY_PIN cannot be read.");
    expect(empty.text).toContain("is empty.");
  });
});
