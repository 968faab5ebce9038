import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { signed, signIn } from "../kit/clients/console-client.ts";
import { describePostgres, useDatabase } from "../kit/postgres/database.ts";
import { frames, INITIALIZE, post, type HttpServer } from "../kit/servers/http-server.ts";
import { useWorld } from "../kit/world.ts";

/** Two servers on one database, each with a state folder of its own, as on two machines. */

describePostgres("two nodes", () => {
  const world = useWorld({ agent: "stand-in" });
  const database = useDatabase();
  let a: HttpServer;
  let b: HttpServer;
  const env = () => ({ XDG_STATE_HOME: world.folder() });
  const start = async (name: string, ...more: string[]) =>
    world.http({ args: [...database().flags(), "--node", name, ...more], env: env() });
  beforeAll(async () => {
    [a, b] = [await start("a", "--labels", "gpu=yes"), await start("b")];
  });

  async function nodes(...args: string[]) {
    const command = ["dist/cli/main.js", "nodes", ...args, ...database().flags()];
    const child = spawn(process.execPath, command, { env: { ...process.env, ...world.environment } });
    const [stdout, stderr, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "exit") as Promise<[number]>,
    ]);
    return { status, stdout, stderr };
  }

  it("the command nodes lists both, for people and for programs", async () => {
    const { nodes: found } = JSON.parse((await nodes("--json")).stdout) as { nodes: unknown[] };
    expect(found).toMatchObject([
      { name: "a", alive: true, draining: false, labels: { gpu: "yes" }, sharedFolders: [], sessions: 0 },
      { name: "b", alive: true, draining: false, labels: {} },
    ]);
    const { status, stdout } = await nodes();
    expect(stdout).toMatch(/^NAME +STATE +VERSION.*\na +alive +\d.*gpu=yes.*\nb +alive /);
    expect(status).toBe(0);
    const unknown = await nodes("drain", "xyzzy");
    expect([unknown.status, unknown.stderr]).toEqual([
      1,
      expect.stringContaining("There is no node xyzzy. Nodes: a, b."),
    ]);
  });

  it("metrics and the console of each node show both", async () => {
    const metrics = await (await a.fetch("/metrics")).text();
    for (const name of ["a", "b"]) expect(metrics).toContain(`claude_code_mcp_node_up{node="${name}"} 1`);
    const page = await signIn(b, b.token);
    const listed = (await (await page.ask("nodes")).json()) as { nodes: { name: string }[] };
    expect(listed.nodes.map(({ name }) => name)).toEqual(["a", "b"]);
  });

  it("a sign-in at the console of a node is valid at the other", async () => {
    const page = await signIn(a, a.token);
    // Behind a load balancer both have one host, and the browser one cookie.
    const cookie = page.cookie.replace(new URL(a.origin).port, new URL(b.origin).port);
    const me = await signed(b, { cookie, key: page.key }).ask("me");
    expect([me.status, await me.json()]).toEqual([200, expect.objectContaining({ principal: "local" })]);
  });

  it("a protocol session of the 2025 era goes on at the other node", async () => {
    const begun = await a.fetch("/mcp", post(INITIALIZE));
    await begun.text();
    const id = begun.headers.get("mcp-session-id") ?? "";
    const headers = { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
    const listed = await b.fetch("/mcp", post({ jsonrpc: "2.0", id: 2, method: "tools/list" }, headers));
    expect(listed.status).toBe(200);
    expect(await listed.text()).toContain("claude_code_check");
  });

  it("a form of a node is answered at the other", async () => {
    const cwd = world.folder();
    const prompt = scriptTag([{ tools: [{ name: "Bash", input: { command: "touch asked" } }] }, { text: "Done." }]);
    const args = { prompt, cwd, waitMs: 40_000 };
    const asked = await call(a, args);
    const form = Object.keys(asked["inputRequests"] ?? {})[0] ?? "";
    expect(asked).toMatchObject({ resultType: "input_required", requestState: expect.any(String) });
    const answer = { action: "accept", content: { decision: "allow" } };
    const answered = await call(b, args, { requestState: asked["requestState"], inputResponses: { [form]: answer } });
    expect(answered).toMatchObject({ structuredContent: { result: { result: "Done.", isError: false } } });
    expect(existsSync(join(cwd, "asked"))).toBe(true);
  });

  it("a session is shown with its place and its node at the other node", async () => {
    const [here, there] = [await a.connect(), await b.connect()];
    const { sessionId } = await here.call("claude_code", {
      prompt: scriptTag([{ text: "Hello." }]),
      cwd: world.folder(),
      waitMs: 40_000,
    });
    const shown = await there.call("claude_code_session", { action: "get", sessionId });
    expect(shown.sessions).toMatchObject([{ sessionId, place: { node: "a" }, node: "a" }]);
    await Promise.all([here.close(), there.close()]);
  });

  it("a node with other users does not start, and names the node that has others", async () => {
    const users = { ann: { scopes: ["read"], allowDirs: ["/srv"] } };
    const refused = await start("c", "--principals", JSON.stringify(users)).then(
      () => "started",
      (error: unknown) => String(error),
    );
    expect(refused).toMatch(/principals: the node [ab] of this store has other users/);
    expect(JSON.parse((await nodes("--json")).stdout)).toMatchObject({ nodes: [{ name: "a" }, { name: "b" }] });
  });

  it("a drained node is not ready, begins no turn, and answers calls", async () => {
    const { status, stdout } = await nodes("drain", "a", "--no-wait");
    expect([status, stdout]).toEqual([0, "a begins no more turns; those that run may end.\n"]);
    expect((await nodes()).stdout).toMatch(/\na +draining /);
    await a.logged("this node is drained");
    const ready = await a.fetch("/readyz");
    expect([ready.status, await ready.json()]).toEqual([503, { status: "unready", reason: "draining" }]);
    expect((await b.fetch("/readyz")).status).toBe(200);
    const client = await a.connect();
    expect(await client.call("claude_code_session", { action: "list" })).toHaveProperty("sessions");
    await client.close();
    expect((await nodes("undrain", "a")).stdout).toBe("a begins turns again.\n");
    await a.logged("this node begins turns again");
    expect((await a.fetch("/readyz")).status).toBe(200);
  });

  it("settings of nodes are refused on a store of one machine", async () => {
    const refused = world.http({ args: ["--node", hostname().replaceAll(/[^\w.-]/g, "-")] }).catch(String);
    expect(await refused).toContain("--node: this store belongs to one machine.");
  });
});

/** Calls `claude_code` as a client of the later era that shows forms. */
async function call(
  server: HttpServer,
  args: object,
  round: object = {},
): Promise<Record<string, Record<string, unknown>>> {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": INITIALIZE.params.clientInfo,
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
  };
  const params = { name: "claude_code", arguments: args, ...round, _meta: meta };
  const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "claude_code" };
  const response = await server.fetch("/mcp", post({ jsonrpc: "2.0", id: 2, method: "tools/call", params }, headers));
  if (response.headers.get("content-type")?.includes("json") === true) {
    return ((await response.json()) as { result: Record<string, Record<string, unknown>> }).result;
  }
  for await (const { message } of frames(response)) {
    const { result } = (message ?? {}) as { result?: Record<string, Record<string, unknown>> };
    if (result) return result;
  }
  throw new Error("no answer");
}
