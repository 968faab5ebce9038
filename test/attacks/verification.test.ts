import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { OutputTail } from "../../src/claude/checks/output-tail.ts";
import type { ClaudeDependencies } from "../../src/claude/dependencies.ts";
import { EnvironmentRecords } from "../../src/claude/environment-records.ts";
import { Guards } from "../../src/claude/supervise/guards.ts";
import { findPidNamespace } from "../../src/claude/supervise/isolation.ts";
import type { Confinement } from "../../src/domain/principal.ts";
import { createMasker } from "../../src/log/mask.ts";
import { amount } from "../kit/runner/amount.ts";
import { ALL_KINDS, daemonCommand, runningWith } from "../kit/sessions/background-commands.ts";
import { placementOf, runtimeFor } from "../kit/sessions/confined-runtime.ts";

/** Hostile commands and repositories of a verification, without a server around the runner. */

let root = "";
let cwd = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "verification-")));
  cwd = join(root, "work");
  mkdirSync(cwd);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const PATH = process.env["PATH"] ?? "";

function checksWith(confinement: Partial<Confinement> = {}, settings: Partial<ClaudeDependencies> = {}, path = PATH) {
  const environments = new EnvironmentRecords(Buffer.alloc(32), { PATH: path });
  return runtimeFor(confinement, { environments, ...settings }).checks;
}

const session = () => ({ ...placementOf({ cwd }), sessionId: "s", processTag: "s:checks" });
const limits = (stop = new AbortController().signal) => ({ stop, timeoutMs: 60_000 });

const isolation = await findPidNamespace().catch(() => undefined);
const ways = [
  ["setpriv", await Guards.find({ forceReaper: false })],
  ["the reaper alone", await Guards.find({ forceReaper: true })],
  ...(isolation ? [["a pid namespace", await Guards.find({ forceReaper: false, isolation })] as const] : []),
] as const;

describe.runIf(process.platform === "linux").each(ways)("processes of commands under %s", (_, guards) => {
  it("no kind of detached process outlives its command", async () => {
    const word = (kind: string) => `${cwd}-${String(ALL_KINDS.findIndex((each) => each === kind))}`;
    const commands = ALL_KINDS.map((kind) => daemonCommand(kind, word(kind)));
    const { status } = await checksWith({}, { guards }).run(session(), commands, limits());
    expect(status).toBe("passed");
    expect(ALL_KINDS.filter((kind) => runningWith(word(kind)).length > 0)).toEqual([]);
  });

  it("a command that starts processes without end is ended with all of them", async () => {
    const word = `${cwd}-of-many`;
    const kinds = ALL_KINDS.map((kind) => daemonCommand(kind, word)).join("\n");
    const controller = new AbortController();
    const command = `trap "" TERM; while :; do ${kinds}\n touch begun; sleep 0.05; done`;
    const ended = checksWith({}, { guards }).run(session(), [command, "touch next"], limits(controller.signal));
    await expect.poll(() => existsSync(join(cwd, "begun")), { interval: 10 }).toBe(true);
    controller.abort();
    expect(await ended).toMatchObject({ status: "stopped", commands: [{ exit: null }] });
    expect(runningWith(word)).toEqual([]);
    expect(existsSync(join(cwd, "next"))).toBe(false);
  });
});

describe.runIf(process.platform === "linux")("a repository of a verification", () => {
  it("a folder replaced by a link to a place outside is refused at the start of the commands", async () => {
    const outside = realpathSync(mkdtempSync(join(tmpdir(), "outside-")));
    const checks = checksWith({ allowDirs: [root] });
    const moved = `mv ${cwd} ${cwd}-moved && ln -s ${outside} ${cwd}`;
    expect(await checks.run(session(), ["pwd", moved], limits())).toMatchObject({ status: "passed" });
    const outcome = await checks.run(session(), ["touch planted"], limits());
    expect(outcome).toMatchObject({ status: "lost", commands: [] });
    expect(outcome.message).toContain("outside the folders");
    expect(existsSync(join(outside, "planted"))).toBe(false);
    rmSync(outside, { recursive: true });
  });

  it("a shell planted in the project is not started, by any folder of `PATH`", async () => {
    const folders = ["", "bin", "node_modules/.bin"].map((name) => join(cwd, name));
    for (const folder of folders) {
      mkdirSync(folder, { recursive: true });
      for (const name of ["bash", "sh"])
        writeFileSync(join(folder, name), `#!/bin/sh\ntouch ${root}/planted\n`, { mode: 0o755 });
    }
    const link = join(root, "link");
    symlinkSync(join(cwd, "bin"), link);
    const path = [...folders, link, ".", "", PATH].join(delimiter);
    expect(await checksWith({}, {}, path).run(session(), ["echo ran"], limits())).toMatchObject({
      status: "passed",
      commands: [{ tail: "ran" }],
    });
    expect(existsSync(join(root, "planted"))).toBe(false);
  });
});

describe("secrets in the output of a command", () => {
  const SECRET = "tok3n/with+odd=chars-0123456789";
  const masker = createMasker({ API_TOKEN: SECRET });
  const parts = Array.from({ length: SECRET.length - 5 }, (_, at) => SECRET.slice(at, at + 6));

  /** Yields numbers below `most`, the same for each seed. */
  function randomOf(seed: number) {
    let state = seed * 2_654_435_761 + 1;
    return (most: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * most);
    };
  }

  /** Returns an output of many pieces; in some secrets, the color changes. */
  function outputOf(random: (most: number) => number): Buffer {
    const pieces = ["\n", "\r\n", "é😀", "x".repeat(random(300)), "\u001b[31m", "\u0007", SECRET, SECRET, "line\n"];
    const text = Array.from({ length: 3_000 }, () => pieces[random(pieces.length)] ?? "").join("");
    const colored = text.replaceAll(SECRET, () => {
      const at = random(SECRET.length);
      return random(3) === 0 ? `${SECRET.slice(0, at)}\u001b[1m${SECRET.slice(at)}` : SECRET;
    });
    return Buffer.from(colored);
  }

  /** Reads the output in random pieces, with lines on stderr between them. */
  async function shownOf(bytes: Buffer, random: (most: number) => number): Promise<string> {
    const output = new OutputTail();
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    for (const stream of [stdout, stderr]) output.read(stream);
    for (let at = 0; at < bytes.length;) {
      const length = 1 + random(60_000);
      stdout.write(bytes.subarray(at, at + length));
      if (random(2) === 0) stderr.write(`warning ${SECRET}\n`);
      at += length;
      await setImmediate();
    }
    return output.text((each) => masker.text(each));
  }

  it("no six characters of a secret are shown, however the output is mixed, colored, cut and divided", async () => {
    const faults: unknown[] = [];
    for (let seed = 0; seed < amount(100, 2_000); seed += 1) {
      const random = randomOf(seed);
      const shown = await shownOf(outputOf(random), random);
      const leaked = parts.find((part) => shown.includes(part));
      if (leaked !== undefined || shown.includes("\u001b") || Buffer.byteLength(shown) > 2_048)
        faults.push({ seed, leaked, shown });
    }
    expect(faults).toEqual([]);
  });
});
