import { describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import type { ClientKind, Connection } from "../kit/clients/connection.ts";
import type { Daemon } from "../kit/servers/daemon.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { stream } from "../kit/clients/streaming.ts";
import { useWorld } from "../kit/world.ts";

/** Tests which turns and prompts end with a client of a daemon. */

const world = useWorld({ agent: "stand-in" });

const ENDED = "interrupted by the end of its client";
const asks = scriptTag([{ tools: [{ name: "Bash", input: { command: "touch no.txt" } }] }, { text: "asked" }]);
const gatedReply = (gate: string, text = "over") => scriptTag([{ text, gateBefore: gate }]);

async function kill(client: Server): Promise<void> {
  process.kill(client.pid, "SIGKILL");
  await client.gone;
}

async function sessionsOf(client: Connection): Promise<string[]> {
  const { sessions } = await client.call("claude_code_session", { action: "list" });
  return sessions.map(({ sessionId }) => sessionId);
}

/** Id of the only session; `undefined` before the first session exists. */
async function onlySession(client: Connection): Promise<string | undefined> {
  const [id, ...others] = await sessionsOf(client);
  expect(others).toEqual([]);
  return id;
}

async function startSession(daemon: Daemon, tool: string, args: Record<string, unknown>): Promise<[Server, string]> {
  const observer = await daemon.client();
  const client = await daemon.client();
  client.call(tool, args).catch(() => undefined);
  await expect.poll(async () => onlySession(observer)).toBeTruthy();
  const id = (await onlySession(observer)) ?? "";
  await observer.close();
  return [client, id];
}

describe("a client that is killed", () => {
  it("a killed client ends its turn of `claude_code_query`, and no turn of `claude_code`", async () => {
    const daemon = await world.daemon({ name: "ends", args: ["--toolsets", "all"], env: storeOf("ends") });
    const [client, queried] = await startSession(daemon, "claude_code_query", {
      prompt: gatedReply("never"),
      cwd: world.folder(),
    });
    const { sessionId } = await client.call("claude_code", { prompt: gatedReply("goes on"), cwd: world.folder() });
    await kill(client);
    world.model.release("goes on");
    const next = await daemon.client();
    expect(await next.end(queried)).toMatchObject({ result: { errorSubtype: "interrupted" } });
    expect(await next.end(sessionId)).toMatchObject({ result: { result: "over", isError: false } });
    await daemon.close();
  });

  it.each<ClientKind>(["modern", "legacy"])(
    "a killed client ends its turn of `claude_chat_query` with an open form: %s",
    async (kind) => {
      const args = ["--toolsets", "all", "--approvals", "user"];
      const daemon = await world.daemon({ name: `form-${kind}`, args, env: storeOf(`form-${kind}`) });
      let shown = () => undefined as void;
      const isShown = new Promise<void>((resolve) => (shown = resolve));
      const client = await daemon.client({
        kind,
        person: async () => {
          shown();
          return new Promise(() => undefined);
        },
      });
      const cwd = world.folder();
      const { data } = await stream(client, "claude_session_create", { cwd });
      const sessionId = String(data["sessionId"]);
      stream(client, "claude_chat_query", { sessionId, prompt: asks }).catch(() => undefined);
      await isShown;
      await kill(client);
      const next = await daemon.client();
      const ended = await next.end(sessionId);
      // The killed client had opened the conversation, so the daemon closes the session.
      await expect.poll(async () => (await next.end(sessionId)).status).toBe("closed");
      expect(ended).toMatchObject({ result: { errorSubtype: "interrupted" } });
      expect(await next.refusal("claude_chat_query", { sessionId, prompt: "more" })).toMatchObject({
        code: "CANCELLED",
      });
      await daemon.close();
    },
  );

  it("a killed client ends its prompts with `endWithClient` of `claude_code`, and another's queued prompt runs", async () => {
    const daemon = await world.daemon({ name: "bound", env: storeOf("bound") });
    const [client, other] = [await daemon.client(), await daemon.client()];
    const begin = { prompt: gatedReply("never"), cwd: world.folder(), advanced: { endWithClient: true } };
    const { sessionId } = await client.call("claude_code", begin);
    const queue = { sessionId, whenBusy: "queue" };
    await client.call("claude_code_reply", {
      ...queue,
      prompt: gatedReply("never"),
      advanced: { endWithClient: true },
    });
    await other.call("claude_code_reply", { ...queue, prompt: scriptTag([{ text: "of another" }]) });
    await kill(client);
    expect(await other.end(sessionId)).toMatchObject({ result: { result: "of another" } });
    const { events } = await other.call("claude_code_check", { action: "poll", sessionId, responseMode: "full" });
    const told = JSON.stringify(events);
    expect(told).toContain(ENDED);
    expect(told).toContain("client_gone");
    await daemon.close();
  });
});

it("a prompt with `endWithClient` is lost with its daemon and not resumed", async () => {
  const env = storeOf("dies");
  const daemon = await world.daemon({ name: "dies", env });
  const client = await daemon.client();
  const advanced = { endWithClient: true, onLost: "resume" };
  const { sessionId } = await client.call("claude_code", {
    prompt: gatedReply("never"),
    cwd: world.folder(),
    advanced,
  });
  await daemon.end("SIGKILL");
  const next = await world.daemon({ name: "dies", env });
  expect(await client.end(sessionId)).toMatchObject({ result: { errorSubtype: "lost" } });
  await next.close();
});

describe("`endWithClient` over HTTP", () => {
  const bound = () => ({ prompt: gatedReply("never"), cwd: world.folder(), advanced: { endWithClient: true } });

  it("a prompt with `endWithClient` ends with the protocol session of a 2025 client, and is refused without one", async () => {
    const server = await world.http();
    const later = await server.connect("modern");
    expect(await later.refusal("claude_code", bound())).toMatchObject({ code: "INVALID_ARGUMENT" });
    const client = await server.connect("legacy");
    const { sessionId } = await client.call("claude_code", bound());
    const id = client.client.transport?.sessionId ?? "";
    const ended = await server.fetch("/mcp", { method: "DELETE", headers: { "mcp-session-id": id } });
    expect(ended.status).toBe(200);
    expect(await later.end(sessionId)).toMatchObject({ result: { errorSubtype: "interrupted" } });
  });
});

/** Environment with a separate store, without sessions of the rest of the tests. */
function storeOf(name: string): Record<string, string> {
  return { XDG_STATE_HOME: `${world.configFolder}/${name}` };
}
