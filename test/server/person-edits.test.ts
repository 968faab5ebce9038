import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { signIn, type ConsoleClient } from "../kit/clients/console-client.ts";
import type { HttpServer } from "../kit/servers/http-server.ts";
import { namedUsers } from "../kit/servers/named-users.ts";
import { useWorld } from "../kit/world.ts";

/** Commands changed by a person or by a model. `test/unit/claude-mentioned.test.ts` tests the parsing. */

const users = namedUsers({ ann: { scopes: ["read", "run", "approve"] } });
const world = useWorld({ agent: "stand-in" });
let http: HttpServer;
let ann: ConsoleClient;
let cwd: string;
beforeAll(async () => {
  const rules = ["--deny-rules", "Read(secret/**),Bash(mkfs:*)", "--approvals", "caller,console"];
  http = await world.http({ args: [...users.args, ...rules, "--caller-approves", "all"] });
  ann = await signIn(http, users.tokens.ann);
  cwd = world.folder();
  mkdirSync(join(cwd, "sub"));
  mkdirSync(join(cwd, "secret"));
});

/** Commands with hidden files or programs, and the reason in the answer. */
const UNREAD: readonly (readonly [command: string, says: string])[] = [
  ["cd sub && ls", "Read(secret/**): `cd` hides which files it means"],
  ["echo $HOME", "Read(secret/**): `$` hides which files it means"],
  ["for f in a b; do echo $f; done", "Read(secret/**): `$` hides"],
  ["git -C sub --version", "Read(secret/**): `-C` hides"],
  ["ls *", "Read(secret/**): `*` hides"],
  ["echo a\\ b", "Read(secret/**): `\\` hides"],
  ["bash -c 'echo a'", "Bash(mkfs:*): bash can run another command"],
  ['"$(echo echo)" a', "Bash(mkfs:*): the name of a program in it is not written out"],
];

/** Commands with a readable part that matches a deny rule, beside unreadable parts. */
const DENIED = [
  "mkfs /dev/x",
  "cd sub && mkfs /dev/x",
  "for f in a; do mkfs $f; done",
  "cat secret/a",
  "echo $HOME; cat secret/a",
  "cat $(cat secret/a)",
  "cd sub && cat ../secret/a",
  "cat * secret/a",
  "cat secret/*",
  "for f in a; do cat secret/$f; done",
  "cat secret/a; cd sub",
  "git -C sub status; cat secret/a",
  `echo ${Array.from({ length: 300 }, (_, at) => `w${String(at)}`).join(" ")}; cat secret/a`,
];

const run = (command: string) => ({ tools: [{ name: "Bash", input: { command } }] });

describe("changed commands", () => {
  it("a person's changed command is refused if it matches a deny rule, not for parts that cannot be read", async () => {
    const prompt = scriptTag([...UNREAD.map(() => run("mkdir -p made")), { text: "end" }]);
    const id = await ann.start(prompt, cwd);
    const answer = async (requestId: string, command: string) =>
      ann.post(`sessions/${id}/requests/${requestId}`, { decision: "allow", updatedInput: { command } });
    const first = await ann.asked(id);
    for (const command of DENIED) {
      const refused = await answer(first.requestId, command);
      const says = /denies it: Bash\(mkfs:\*\)|may touch what a rule denies: Read\(secret\/\*\*\)/;
      expect([command, refused.status, await refused.text()]).toEqual([command, 403, expect.stringMatching(says)]);
    }
    let last: string | undefined;
    for (const [command] of UNREAD) {
      const { requestId } = await ann.asked(id, last);
      expect([command, (await answer(requestId, command)).status]).toEqual([command, 200]);
      last = requestId;
    }
    await ann.end(id);
  });

  it("a model's changed command is refused for parts that cannot be read, with the reason", async () => {
    const model = await http.connect("modern", users.tokens.ann);
    const prompt = scriptTag([run("mkdir -p made"), { text: "end" }]);
    const { sessionId } = await model.call("claude_code", { prompt, cwd });
    const { actions } = await model.news(sessionId);
    const answer = { action: "respond_permission", sessionId, requestId: actions[0]?.requestId, decision: "allow" };
    for (const [command, says] of UNREAD) {
      const permissionOptions = { updatedInput: { command } };
      const { code, text } = await model.refusal("claude_code_check", { ...answer, permissionOptions });
      expect([command, code, text]).toEqual([command, "PERMISSION_DENIED", expect.stringContaining(says)]);
      expect(text).toContain("cannot be checked against the rule");
    }
    await model.call("claude_code_session", { action: "cancel", sessionId });
  });

  it("a request says in advance why its command cannot be checked against a rule", async () => {
    // `mkdir` makes Claude Code ask about each command.
    const asked = [...UNREAD.map(([command]) => `${command}; mkdir -p made`), "mkdir -p made"];
    const id = await ann.start(scriptTag([...asked.map(run), { text: "end" }]), cwd);
    let last: string | undefined;
    const said: (string | undefined)[] = [];
    for (const _ of asked) {
      const { requestId, unchecked } = await ann.asked(id, last);
      said.push(unchecked);
      await ann.post(`sessions/${id}/requests/${requestId}`, { decision: "deny" });
      last = requestId;
    }
    expect(said).toEqual([...UNREAD.map(([, says]) => expect.stringContaining(says) as string), undefined]);
    await ann.end(id);
  });
});
