import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scriptTag } from "../../src/demo/model/script.ts";
import { signIn } from "../kit/clients/console-client.ts";
import { useWorld } from "../kit/world.ts";

/** Files and settings with which a server starts, or must refuse to start. */

const world = useWorld({ agent: "stand-in" });

const prompt = scriptTag([{ text: "Done." }]);

it("an audit log that is a pipe without a reader is reported in the log, and the call is answered", async () => {
  const pipe = join(world.folder(), "audit");
  execFileSync("bash", ["-c", `mkfifo ${pipe}`]);
  const server = await world.server({ args: ["--audit-log", pipe] });
  const answer = await server.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
  expect(answer).toMatchObject({ status: "idle", result: { result: "Done." } });
  await expect.poll(() => server.stderr()).toContain("the audit log cannot be written");
});

it("a server whose start folder was deleted goes on, and requires cwd", async () => {
  const gone = join(world.folder(), "gone");
  mkdirSync(gone);
  const main = join(process.cwd(), "dist/cli/main.js");
  const through = ["bash", "-c", 'cd "$1"; shift; node=$1; shift 2; exec "$node" "$MAIN" "$@"', "bash", gone];
  const server = await world.http({ through, env: { MAIN: main } });
  rmSync(gone, { recursive: true });
  const client = await server.connect();
  const { code, text } = await client.refusal("claude_code", { prompt });
  expect([code, text]).toEqual(["INVALID_ARGUMENT", expect.stringMatching(/cwd: .*(?:does not exist|is gone)/)]);
  const answer = await client.call("claude_code", { prompt, cwd: world.folder(), waitMs: 40_000 });
  expect(answer).toMatchObject({ status: "idle", result: { result: "Done." } });
  await client.close();
  const page = await signIn(server, server.token);
  expect(await page.get<object>("me")).toMatchObject({ principal: "local" });
  const refused = await page.post("sessions", { prompt });
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("cwd: ")]);
  await page.end(await page.start(prompt, world.folder()));
});

it.each([":memory:", "file:store.db", "file::memory:?cache=shared", "mysql://host/db"])(
  "--store %s is refused, and no file is created",
  (store) => {
    const cwd = world.folder();
    const main = join(process.cwd(), "dist/cli/main.js");
    const { status, stderr } = spawnSync(process.execPath, [main, "--store", store], { cwd, encoding: "utf8" });
    expect(status).toBe(2);
    expect(stderr).toContain("memory: for a store in memory");
    expect(readdirSync(cwd)).toEqual([]);
    expect(existsSync(join(cwd, store))).toBe(false);
  },
);

it("an error of the command line repeats no control characters of a terminal", () => {
  const steering = "\u001B]0;mine\u0007\u202Etxt";
  for (const args of [
    [steering],
    [`--${steering}`],
    ["--store", steering],
    ["sessions", steering],
    ["sessions", "show", steering],
  ]) {
    const env = { PATH: process.env["PATH"], HOME: world.folder() };
    const { stderr, stdout } = spawnSync(process.execPath, ["dist/cli/main.js", ...args], {
      encoding: "utf8",
      env,
      input: "",
    });
    for (const character of "\u001B\u0007\u202E") expect(stderr + stdout).not.toContain(character);
  }
});
