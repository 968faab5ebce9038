import { existsSync, mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

import { scriptTag } from "../../src/demo/model/script.ts";
import { ESCAPES, plantImage, PATH_ARGUMENTS, type AttackFolders } from "../kit/attacks/escapes.ts";
import type { Server } from "../kit/servers/stdio-server.ts";
import { useWorld } from "../kit/world.ts";

const world = useWorld({ agent: "stand-in" });
let place: AttackFolders;
let server: Server;
let auditLog: string;
beforeAll(async () => {
  const root = world.folder();
  place = { allowed: join(root, "allowed"), outside: join(root, "outside") };
  for (const folder of [place.allowed, place.outside]) mkdirSync(folder);
  auditLog = join(world.folder(), "audit.jsonl");
  server = await world.server({ args: ["--allow-dir", place.allowed, "--audit-log", auditLog] });
});

describe.each(ESCAPES)("a caller does not leave --allow-dir by $how", (escape) => {
  it("no argument that names a folder or a file leads out of --allow-dir", async () => {
    const folder = escape.folder(place);
    if (folder !== "/") plantImage(folder);
    for (const { args, argument, tool } of PATH_ARGUMENTS) {
      const { code, text } = await server.refusal(tool, args(folder, place));
      expect([argument, code]).toEqual([argument, "INVALID_ARGUMENT"]);
      expect(text).toContain(`${argument}: `);
      expect(text).toContain("--allow-dir");
    }
    const entries = readFileSync(auditLog, "utf8").trim().split("\n").slice(-PATH_ARGUMENTS.length);
    for (const entry of entries) expect(entry).toContain("INVALID_ARGUMENT");
  });
});

it("a link redirected after the start leads no later process out of --allow-dir", async () => {
  const way = join(place.allowed, "way");
  symlinkSync(place.allowed, way);
  const prompt = (text: string) => scriptTag([{ text }]);
  const { sessionId } = await server.call("claude_code", { prompt: prompt("in"), cwd: way, waitMs: 40_000 });
  unlinkSync(way);
  symlinkSync(place.outside, way);
  const { code, text } = await server.refusal("claude_code_reply", { sessionId, prompt: prompt("out") });
  expect(code).toBe("INVALID_ARGUMENT");
  expect(text).toContain("cwd: ");
});

it("a Claude Code that is a script is not run by a `node` that a repository has in PATH", async () => {
  const repository = world.folder();
  const bin = join(repository, "node_modules/.bin");
  mkdirSync(bin, { recursive: true });
  const node = `#!/bin/sh\ntouch "${repository}/pwned"\nexec "${process.execPath}" "$@"\n`;
  writeFileSync(join(bin, "node"), node, { mode: 0o755 });
  const PATH = [bin, process.env["PATH"]].join(delimiter);
  const attacked = await world.server({ args: ["--daemon", "off"], env: { PATH } });
  const { status } = await attacked.call("claude_code", { prompt: scriptTag([{ text: "hi" }]), waitMs: 40_000 });
  expect(status).toBe("idle");
  expect(existsSync(join(repository, "pwned"))).toBe(false);
});
