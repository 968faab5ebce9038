import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runScript, readWholeLog } from "../kit/sessions/one-turn.ts";
import { useWorld } from "../kit/world.ts";

/** In acceptEdits, Claude Code runs some shell commands as edits: their writes are checked like writes of a file tool. */

const world = useWorld();

describe("acceptEdits of `permissionMode` in `claude_code`", () => {
  it("acceptEdits asks for a shell command that would write a file that runs commands", async () => {
    const bounded = await world.server({ args: ["--caller-approves", "edits"] });
    const cwd = world.folder();
    mkdirSync(join(cwd, "x"));
    writeFileSync(join(cwd, "x", "envrc"), "x");
    const asked = [
      ["cp x/envrc .envrc", ".envrc"],
      ["cp x/envrc .v''imrc", ".vimrc"],
      ["cp x/envrc .gdbini\\t", ".gdbinit"],
      ["cp x/* .tmux.conf", ".tmux.conf"],
      ["cd x && cp envrc .lldbinit", "x/.lldbinit"],
      ["touch .mcp.json", ".mcp.json"],
      ["mkdir -p .github/workflows", ".github"],
      ["/bin/cp x/envrc .kshrc", ".kshrc"],
      ["sed -n 'w .psqlrc' x/envrc", ".psqlrc"],
      ["echo x > .pdbrc", ".pdbrc"],
      ["cat x/envrc | tee .irbrc", ".irbrc"],
    ] as const;
    const edits = [
      ["cp x/envrc a.txt", "a.txt"],
      ["mkdir -p src/deep", "src/deep"],
    ] as const;
    const script = [...asked, ...edits].map(([command]) => ({ tools: [{ name: "Bash", input: { command } }] }));
    const given = { cwd, permissionMode: "acceptEdits", permissionRequestTimeoutMs: 1000 };
    const { sessionId } = await runScript(bounded, [...script, { text: "end" }], given);
    await bounded.call("claude_code_check", { action: "poll", sessionId, until: "end", waitMs: 40_000 });
    const { events, status } = await readWholeLog(bounded, sessionId);
    expect(status).toBe("idle");
    const written = [...asked, ...edits].filter(([, file]) => existsSync(join(cwd, file)));
    expect(written).toEqual(edits);
    const requests = events.flatMap(({ data, type }) => (type === "permission_request" ? [data] : []));
    expect(requests.length).toBeGreaterThanOrEqual(asked.length);
  });
});
