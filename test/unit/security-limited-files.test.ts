import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

import { LimitedAccess, NoAnswerError, otherwise, stat } from "../../src/security/files/limited.ts";
import { readSmall } from "../../src/security/files/plain-file.ts";

const root = mkdtempSync(join(tmpdir(), "ccm-limited-"));
afterAll(() => rmSync(root, { recursive: true }));

/** With a mount at /mnt/dead. */
function limited(most: number, limitMs: number): LimitedAccess {
  const mountOf = async (path: string) => Promise.resolve(path.startsWith("/mnt/dead") ? "/mnt/dead" : undefined);
  return new LimitedAccess({ most, mostOfOne: 2, limitMs, mountOf });
}

/** An access that answers when it is told to. */
function question(): { ask: () => Promise<string>; answer: (text: string) => void; asked: () => number } {
  let resolve: (text: string) => void = () => undefined;
  const promise = new Promise<string>((answer) => (resolve = answer));
  let asked = 0;
  return { ask: async () => ((asked += 1), promise), answer: resolve, asked: () => asked };
}

const failure = async (running: Promise<unknown>): Promise<string> =>
  running.then(
    () => "none",
    (error: unknown) => (error instanceof NoAnswerError ? `${error.code} ${error.message}` : String(error)),
  );

describe("access to files within a time limit", () => {
  it("answers and fails as the file system does", async () => {
    const access = limited(1, 60_000);
    expect(await access.run("/a", async () => Promise.resolve("text"))).toBe("text");
    await expect(access.run("/a", async () => Promise.reject(new Error("ENOENT")))).rejects.toThrow("ENOENT");
  });

  it("fails after the limit, names the path and says what to do", async () => {
    const access = limited(2, 20);
    const said = await failure(access.run("/gone/project", question().ask));
    expect(said).toBe(
      "TIMEOUT /gone/project has not answered within 0.02 s: a network folder may be gone, or a FUSE program frozen. Mount it again, or use another folder.",
    );
  });

  it("asks no second time at or below a path that has not answered, and again when it has", async () => {
    const access = limited(4, 20);
    const [first, later] = [question(), question()];
    await failure(access.run("/gone", first.ask));
    for (const path of ["/gone", "/gone/.git", "/gone/a/../b"]) {
      expect(await failure(access.run(path, later.ask))).toContain("TIMEOUT /gone has not answered within");
    }
    expect(later.asked()).toBe(0);
    expect(await access.run("/gone-not", async () => Promise.resolve("other"))).toBe("other");
    expect(() => access.check("/gone/file", "cwd")).toThrow("cwd: /gone has not answered within");
    first.answer("back");
    await expect.poll(() => access.isStuck).toBe(false);
    later.answer("there");
    expect(await access.run("/gone", later.ask)).toBe("there");
  });

  it("runs no more at a time than it may: others wait for their turn", async () => {
    const access = limited(2, 60_000);
    const all = ["/a", "/b", "/c", "/d"].map((path) => ({ path, ...question() }));
    const answers = all.map(async ({ ask, path }) => access.run(path, ask));
    await expect.poll(() => all.map(({ asked }) => asked())).toEqual([1, 1, 0, 0]);
    all[1]!.answer("b");
    await answers[1];
    expect(all.map(({ asked }) => asked())).toEqual([1, 1, 1, 0]);
    for (const { answer, path } of all) answer(path);
    expect(await Promise.all(answers)).toEqual(["/a", "b", "/c", "/d"]);
  });

  it("fails at once, waiting ones too, while all that may run have not answered; the log names them", async () => {
    const access = limited(2, 20);
    const told: string[][] = [];
    access.onStuck = (paths) => told.push([...paths]);
    const [a, b, waiting, late] = [question(), question(), question(), question()];
    const running = [access.run("/a", a.ask), access.run("/b", b.ask), access.run("/c", waiting.ask)];
    const said = await Promise.all(running.map(failure));
    const full = "was not looked at: 2 other files or folders have not answered, which the log of the server names.";
    expect(said[2]).toContain(`TIMEOUT /c ${full}`);
    expect(await failure(access.run("/d", late.ask))).toContain(`TIMEOUT /d ${full}`);
    expect([waiting.asked(), late.asked()]).toEqual([0, 0]);
    expect(told).toEqual([["/a"], ["/a", "/b"]]);
    a.answer("back");
    await expect.poll(async () => failure(access.run("/d", async () => Promise.resolve("d")))).toBe("none");
  });

  it("asks for a path, or what is below it, no more than twice at a time", async () => {
    const access = limited(8, 20);
    const all = ["/gone", "/gone", "/gone", "/gone/a"].map((path) => ({ path, ...question() }));
    const said = await Promise.all(all.map(async ({ ask, path }) => failure(access.run(path, ask))));
    expect(said).toEqual(all.map(() => expect.stringContaining("TIMEOUT /gone has not answered") as string));
    expect(all.map(({ asked }) => asked())).toEqual([1, 1, 0, 0]);
  });

  it("asks a mount no more than twice at a time, and not again once neither has answered", async () => {
    const access = limited(8, 20);
    const all = ["/a", "/b", "/c", "/d"].map((name) => ({ path: `/mnt/dead${name}`, ...question() }));
    const said = await Promise.all(all.map(async ({ ask, path }) => failure(access.run(path, ask))));
    const paths = ["/mnt/dead/a", "/mnt/dead/b", "/mnt/dead", "/mnt/dead"];
    expect(said).toEqual(paths.map((path) => expect.stringContaining(`TIMEOUT ${path} has not answered`) as string));
    expect(all.map(({ asked }) => asked())).toEqual([1, 1, 0, 0]);
    expect(() => access.check("/mnt/dead/e")).toThrow("/mnt/dead has not answered");
    expect(await access.run("/home", async () => Promise.resolve("other"))).toBe("other");
    all[0]!.answer("back");
    await expect.poll(async () => failure(access.run("/mnt/dead/e", async () => Promise.resolve("e")))).toBe("none");
  });

  it("takes an error about a file for an answer, and no answer for none", async () => {
    const access = limited(1, 20);
    expect(await stat(join(root, "missing")).catch(otherwise("missing"))).toBe("missing");
    const stuck = access.run("/gone", question().ask);
    expect(await failure(stuck.catch(otherwise("missing", "cwd")))).toContain("TIMEOUT cwd: /gone has not answered");
  });

  it("reads a file that is larger than a part whole", async () => {
    const file = join(root, "large");
    writeFileSync(file, "ü".repeat(100_000));
    expect(await readSmall(file, 200_000)).toBe("ü".repeat(100_000));
    await expect(readSmall(file, 199_999)).rejects.toThrow("holds more than 199999 bytes");
  });
});

/** What of `node:fs` these folders may use themselves, and for which files: no client names them. */
const DIRECT = new Map([
  ["claude/binary.ts", "the package of this server"],
  ["claude/sdk.ts", "the package of this server"],
  ["claude/version.ts", "the cache folder"],
  ["claude/supervise/detached-processes.ts", "/proc"],
  ["claude/supervise/guards.ts", "/proc"],
  ["claude/supervise/leftover-processes.ts", "/proc"],
  ["claude/supervise/tagged-processes.ts", "/proc"],
  ["claude/supervise/tree.ts", "/proc"],
  ["security/ancestors.ts", "/proc"],
  ["security/descriptors.ts", "/proc"],
  ["security/files/mounts.ts", "/proc"],
  ["security/key-file.ts", "the state folder"],
  ["security/owned.ts", "the package of this server"],
  ["security/private-folder.ts", "the state folder"],
]);
/** What they have of it is for calls within the limit. */
const WITHIN = ["claude/check/folders.ts", "claude/check/images.ts", "security/files/limited.ts"];

it("a file of these folders that asks the system itself is in this table", () => {
  const source = join(import.meta.dirname, "../../src");
  const all = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) =>
    /^(?:claude|security)\//.test(name),
  );
  const asking = all.filter((name) => {
    if (!name.endsWith(".ts")) return false;
    const imported =
      readFileSync(join(source, name), "utf8").match(/^import (?!type ).*from "node:fs(?:\/promises)?";$/gm) ?? [];
    return imported.some((line) => line !== 'import { constants } from "node:fs";');
  });
  expect(asking.toSorted()).toEqual([...DIRECT.keys(), ...WITHIN].toSorted());
});
