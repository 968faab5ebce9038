import { join } from "node:path";
import { expect, it } from "vitest";
import { z } from "zod";

import { addSession, expectedRefusal, id, NOW, runProgram, seed } from "../kit/clients/sessions-command.ts";
import { runScript } from "../kit/sessions/one-turn.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in", daemon: "never" });

const Trial = z.looseObject({ changes: z.array(z.looseObject({ toolName: z.string() })) });

async function tryRules(...args: string[]) {
  const { status, stdout, stderr } = await runProgram(["rules", "try", "--json", ...args]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return Trial.parse(JSON.parse(stdout));
}

it("`rules try` reports the decisions that other rules would change, while the server runs", async () => {
  const store = ["--store", join(world.folder(), "store.db")];
  const given = ["--allow-rules", "Bash(touch:*)", "--deny-rules", "Bash(mkdir:*)"];
  const server = await world.server({ args: [...store, ...given] });
  const cwd = world.folder();
  const bash = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });
  const script = [bash("touch a"), bash("mkdir b"), bash("cat a"), bash("npm test"), { text: "end" }];
  const asked = await runScript(server, script, { cwd });
  const { sessionId } = asked;
  const answer = { action: "respond_permission", requestId: asked.actions[0]?.requestId, decision: "deny" };
  await server.call("claude_code_check", { ...answer, sessionId, waitMs: 20_000 });

  const same = await tryRules(...store, ...given);
  expect(same).toMatchObject({
    changed: 0,
    changes: [],
    rules: { allow: ["Bash(touch:*)"], ask: [], deny: ["Bash(mkdir:*)", "PeerMessage"] },
    requests: { before: { allowed: 1, asked: 1, denied: 0 }, after: { allowed: 1, asked: 1, denied: 0 } },
    calls: { before: { unasked: 1, denied: 1 }, after: { unasked: 1, denied: 1 }, unjudged: 0 },
  });

  const others = ["--allow-rules", "Bash(npm test)", "--deny-rules", "Bash(cat:*)"];
  const { changes, ...counts } = await tryRules(...store, ...others);
  const by = { sessionId, toolName: "Bash" };
  expect(changes).toMatchObject([
    { ...by, input: "touch a", before: { route: "allowed", rule: "Bash(touch:*)" }, after: { route: "asked" } },
    { ...by, input: "cat a", before: { route: "unasked" }, after: { route: "denied", rule: "Bash(cat:*)" } },
    {
      ...by,
      input: "npm test",
      before: { route: "asked", answer: "deny", by: "caller" },
      after: { route: "allowed", rule: "Bash(npm test)" },
    },
  ]);
  expect(counts).toMatchObject({ changed: 3, calls: { unjudged: 1 }, sessions: 1 });
  const told = await runProgram(["rules", "try", ...store, ...others]);
  expect(told.stdout).toMatch(/ Bash npm test: asked, denied by caller -> allowed by Bash\(npm test\)\n/);
  expect(told.stdout).toMatch(/\nrequests asked +1 +1\n/);
});

it("`rules try` reads the sessions of all principals since a time, and creates no store", async () => {
  const store = await seed(join(world.folder(), "seeded.db"), async (node) => {
    const request = { requestId: "r", kind: "permission" as const, toolName: "Bash", toolUseId: "u" };
    const ask = (command: string) => ({ type: "permission.asked" as const, data: { ...request, input: { command } } });
    await addSession(node, id(1), { principal: "ann", events: [ask("ls")] });
    await addSession(node, id(2), { events: [ask("curl -H [masked]")] });
    await addSession(node, id(3), { at: NOW - 9 * 86_400_000, events: [ask("ls")] });
  });
  expect(await tryRules("--since", "7d", "--allow-rules", "Bash(ls),Bash(curl:*)", ...store)).toMatchObject({
    changes: [{ sessionId: id(1), before: { route: "asked" }, after: { route: "allowed" } }],
    requests: { before: { asked: 2 }, after: { allowed: 1, asked: 0 }, unjudged: 1 },
    sessions: 2,
  });
  const none = join(world.folder(), "none.db");
  for (let time = 0; time < 2; time += 1) expect(await tryRules("--store", none)).toMatchObject({ sessions: 0 });
  const refused = await runProgram(["rules", "try", "--allow-rules", "Write(src/**)", ...store]);
  expect(refused).toEqual(
    expectedRefusal(2, "--allow-rules cannot be used: the rule Write\\(src/\\*\\*\\) has a path"),
  );
});
