import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { runScript, readWholeLog } from "../kit/sessions/one-turn.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

/** Inputs changed by an answer, and deceptive paths, through the real Claude Code. */

const OUTSIDE = "outside the session's folders";

const world = useWorld();
let owner: Server;
let other: Server;
let bounded: Server;
beforeAll(async () => {
  const settings = { permissions: { deny: ["Bash(rm *)", "Read(./hidden/**)"] } };
  writeFileSync(join(world.configFolder, "settings.json"), JSON.stringify(settings));
  owner = await world.server({ args: ["--deny-rules", "Bash(ln:*)"] });
  // `other` has no rules of its own, and its answers travel through the store.
  other = await world.server();
  bounded = await world.server({ args: ["--caller-approves", "edits", "--deny-rules", "Edit(denied/**)"] });
});

describe("changed inputs: `claude_code_check`", () => {
  it("a changed input passes every check of a request on any server, in the form in which it runs", async () => {
    const cwd = world.folder();
    for (const folder of ["secret", "hidden"]) {
      mkdirSync(join(cwd, folder));
      writeFileSync(join(cwd, folder, "a"), "x");
    }
    const outside = join(world.folder(), "b");
    writeFileSync(outside, "x");
    const script = [
      { tools: [{ name: "Bash", input: { command: "mkdir okdir" } }] },
      { tools: [{ name: "Read", input: { file_path: outside } }] },
      { text: "end" },
    ];
    const disallowedTools = ["Bash(touch *)", "Read(./secret/**)"];
    const first = await runScript(owner, script, { cwd, disallowedTools });
    const { sessionId } = first;
    const answer = (requestId: string | undefined, updatedInput: object) => {
      const response = { action: "respond_permission", sessionId, requestId, decision: "allow" };
      return { ...response, permissionOptions: { updatedInput }, waitMs: 40_000 };
    };
    const refusedBash: [string, string][] = [
      ["touch sneaked", "a rule of the session or of its settings denies it: Bash(touch *)"],
      ["true; touch sneaked", "Bash(touch *)"],
      ["rm -rf secret", "Bash(rm *)"],
      ["ln secret/a linked", "a rule of the operator denies it: Bash(ln:*)"],
      ["cat secret/a", "may touch what a rule denies: Read(./secret/**)"],
      ["cat sec'r'et/a", "Read(./secret/**)"],
      ["cat hidden/a", "Read(./hidden/**)"],
      ["cat $x/a", "cannot be checked against the rule Read(./secret/**): `$` hides which files it means"],
      ["cd secret", "cannot be checked against the rule Read(./secret/**): `cd` hides which files it means"],
    ];
    for (const on of [owner, other]) {
      for (const [command, problem] of refusedBash) {
        const refused = await on.refusal("claude_code_check", answer(first.actions[0]?.requestId, { command }));
        expect([command, refused]).toMatchObject([
          command,
          { code: "PERMISSION_DENIED", text: expect.stringContaining(problem) },
        ]);
      }
    }
    const taken = answer(first.actions[0]?.requestId, { command: "mkdir otherdir" });
    const second = await other.call("claude_code_check", taken);
    expect(second.actions).toMatchObject([{ toolName: "Read" }]);
    const refusedRead: [string, string][] = [
      [join(cwd, "secret", "a"), "Read(./secret/**)"],
      [` ${join(cwd, "secret", "a")}`, "Read(./secret/**)"],
      [`${join(cwd, "secret", "a")}\u00A0`, "Read(./secret/**)"],
      [join(cwd, "SECRET", "a"), "Read(./secret/**)"],
      [join(cwd, "hidden", "a"), "Read(./hidden/**)"],
      [`${outside} /.`, "ends in white space"],
      ["secret/../c", "names a relative path"],
    ];
    for (const [file_path, problem] of refusedRead) {
      const refused = await owner.refusal("claude_code_check", answer(second.actions[0]?.requestId, { file_path }));
      expect([file_path, refused]).toMatchObject([
        file_path,
        { code: "PERMISSION_DENIED", text: expect.stringContaining(problem) },
      ]);
    }
    const end = await owner.call("claude_code_check", answer(second.actions[0]?.requestId, { file_path: outside }));
    expect(end).toMatchObject({ status: "idle", result: { result: "end" } });
    expect(readdirSync(cwd).toSorted()).toEqual(["hidden", "otherdir", "secret"]);
  });
});

describe("paths with white space at an end", () => {
  it("a path with white space at an end meets the caller's bound, deny rules and the list of files that run commands", async () => {
    const cwd = world.folder();
    const outside = join(world.folder(), "outside.txt");
    const files = [` ${outside}`, `${outside}\u00A0`, `\t${join(cwd, ".vimrc")}`, `${join(cwd, "denied", "a")}\uFEFF`];
    const script = [
      ...files.map((file_path) => ({ tools: [{ name: "Write", input: { file_path, content: "x" } }] })),
      { tools: [{ name: "Write", input: { file_path: ` ${join(cwd, "fine.txt")}\n`, content: "x" } }] },
      { text: "end" },
    ];
    // Only the last call reaches the caller, who never answers.
    const { sessionId } = await runScript(bounded, script, { cwd, permissionRequestTimeoutMs: 1000 });
    await bounded.call("claude_code_check", { action: "poll", sessionId, until: "end", waitMs: 40_000 });
    const whole = { responseMode: "full", maxBytes: 262_144, waitMs: 0 };
    const { events } = await bounded.call("claude_code_check", { action: "poll", sessionId, ...whole });
    const of = (wanted: string) => events.flatMap(({ data, type }) => (type === wanted ? [data] : []));
    expect(of("permission_request").map(({ risk }) => risk)).toMatchObject([
      { level: "all", why: [OUTSIDE] },
      { level: "all", why: [OUTSIDE] },
      { level: "all", why: ["a file that can run commands"] },
      { level: "edits" },
    ]);
    // Claude Code has the deny rule too, and does not ask for the third file.
    expect(of("permission_result").map(({ by }) => by)).toEqual(["rule", "rule", "rule", "timeout"]);
    const written = [outside, join(cwd, ".vimrc"), join(cwd, "denied"), join(cwd, "fine.txt")];
    expect(written.filter((file) => existsSync(file))).toEqual([]);
  });
});

describe("acceptEdits of `permissionMode` in `claude_code`", () => {
  it("acceptEdits asks for files that make other programs run commands, and treats other files as edits", async () => {
    const cwd = world.folder();
    const asked = [
      ".vimrc",
      ".GDBINIT",
      ".cargo/config.toml",
      ".github/workflows/x.yml",
      "bin/git",
      "HEAD",
      "a\u200Bb",
    ];
    const edits = ["package.json", "conftest.py", "src/hooks/use.ts"];
    const writing = (file: string) => ({ name: "Write", input: { file_path: join(cwd, file), content: "x" } });
    const script = [{ tools: [...asked, ...edits].map(writing) }, { text: "end" }];
    const given = { cwd, permissionMode: "acceptEdits", permissionRequestTimeoutMs: 1000 };
    const { sessionId } = await runScript(bounded, script, given);
    const poll = { action: "poll", sessionId, until: "end", waitMs: 40_000 };
    await bounded.call("claude_code_check", poll);
    const { events, status } = await readWholeLog(bounded, sessionId);
    expect(status).toBe("idle");
    const requests = events.flatMap(({ data, type }) => (type === "permission_request" ? [data] : []));
    expect(requests).toHaveLength(asked.length);
    expect([...asked, ...edits].filter((file) => existsSync(join(cwd, file)))).toEqual(edits);
  });
});
