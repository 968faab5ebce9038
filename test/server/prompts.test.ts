import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { CLIENT_KINDS, type Connection } from "../kit/clients/connection.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Prompts lead to permitted actions, and complete arguments from the caller's own sessions and folders. */

const world = useWorld({ agent: "stand-in" });
let server: HttpServer;
let root: string;
let tokens: Readonly<Record<"ada" | "bob" | "eve", string>>;
beforeAll(async () => {
  root = realpathSync(world.folder());
  for (const folder of ["of-ada/project/part", "of-bob/secret"]) mkdirSync(join(root, folder), { recursive: true });
  symlinkSync(join(root, "of-bob"), join(root, "of-ada/project/link"));
  const ALL = ["read", "run", "approve"];
  const named = namedUsers({
    ada: { scopes: ALL, allowDirs: [join(root, "of-ada")] },
    bob: { scopes: ALL, allowDirs: [join(root, "of-bob")] },
    eve: { scopes: ["read"], allowDirs: [join(root, "of-bob")] },
  });
  ({ tokens } = named);
  server = await world.http({ args: named.args });
});

const DELEGATE = { type: "ref/prompt", name: "delegate" } as const;
const RESUME = { type: "ref/prompt", name: "resume" } as const;
const SESSION = { type: "ref/resource", uri: "claude-code://sessions/{id}" } as const;

type Ref = typeof DELEGATE | typeof RESUME | typeof SESSION;

async function complete({ client }: Connection, ref: Ref, name: string, value: string): Promise<string[]> {
  const { completion } = await client.complete({ ref, argument: { name, value } });
  return completion.values;
}

async function start(connection: Connection, cwd: string, title: string): Promise<string> {
  const prompt = scriptTag([{ text: `Said by ${title}.` }]);
  const options = { cwd, model: "claude-haiku-4-5", advanced: { title }, waitMs: 40_000 };
  return (await connection.call("claude_code", { prompt, ...options })).sessionId;
}

describe.each(CLIENT_KINDS)("prompts, with the %s client", (kind) => {
  it("prompts and completions show only the caller's own sessions and folders", async () => {
    const [ada, bob] = [await server.connect(kind, tokens.ada), await server.connect(kind, tokens.bob)];
    const project = join(root, "of-ada/project");
    const own = await start(ada, project, `Tide tables ${kind}`);
    const foreign = await start(bob, join(root, "of-bob"), `Tide tables ${kind}`);

    const { prompts } = await ada.client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(["delegate", "review", "resume"]);
    const resumed = JSON.stringify(await ada.client.getPrompt({ name: "resume", arguments: { sessionId: own } }));
    expect(resumed).toContain(`Said by Tide tables ${kind}.`);
    const reviewed = JSON.stringify(await ada.client.getPrompt({ name: "review", arguments: { sessionId: own } }));
    expect(reviewed).toContain("is idle; model calls so far: 1");

    // Completes by prefix, by words, and as the id of a resource, but never with another user's session.
    for (const [ref, name] of [
      [RESUME, "sessionId"],
      [SESSION, "id"],
    ] as const) {
      expect(await complete(ada, ref, name, own.slice(0, 8))).toEqual([own]);
      expect(await complete(ada, ref, name, `tide ${kind}`)).toEqual([own]);
      expect(await complete(ada, ref, name, foreign.slice(0, 8))).toEqual([]);
      expect(await complete(ada, ref, name, foreign)).toEqual([]);
    }
    for (const name of ["resume", "review"]) {
      await expect(ada.client.getPrompt({ name, arguments: { sessionId: foreign } })).rejects.toMatchObject({
        code: -32_602,
        message: expect.stringContaining("SESSION_NOT_FOUND") as string,
      });
    }

    expect(await complete(ada, DELEGATE, "cwd", join(root, "of-ada/p"))).toEqual([project]);
    expect(await complete(ada, DELEGATE, "cwd", `${project}/`)).toEqual([join(project, "part")]);
    for (const outside of ["of-bob", "of-bob/", "of-bob/s", "of-ada/project/link/", "of-ada/../of-bob/"]) {
      expect([outside, ...(await complete(ada, DELEGATE, "cwd", `${root}/${outside}`))]).toEqual([outside]);
    }
    expect(await complete(ada, DELEGATE, "model", "claude-haiku")).not.toEqual([]);
    expect(await complete(ada, DELEGATE, "agent", "general")).toEqual(["general-purpose"]);
    await Promise.all([ada.close(), bob.close()]);
  });

  it("a user who may only read is offered prompts for reading, and sees no folders", async () => {
    const eve = await server.connect(kind, tokens.eve);
    const { prompts } = await eve.client.listPrompts();
    expect(prompts.map(({ name }) => name)).toEqual(["review"]);
    const refused = (name: string, args: Record<string, string>) =>
      expect(eve.client.getPrompt({ name, arguments: args })).rejects.toMatchObject({
        code: -32_602,
        message: expect.stringContaining("PERMISSION_DENIED") as string,
      });
    await refused("delegate", { task: "x" });
    await refused("review", { cwd: join(root, "of-bob") });
    const ref = { type: "ref/prompt", name: "review" } as const;
    const { completion } = await eve.client.complete({ ref, argument: { name: "cwd", value: `${root}/of-bob/` } });
    expect(completion.values).toEqual([]);
    await eve.close();
  });
});
