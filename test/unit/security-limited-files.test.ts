import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

import { LimitedAccess, NoAnswerError, otherwise, stat } from "../../src/security/files/limited.ts";
import { readSmall } from "../../src/security/files/plain-file.ts";

const root = mkdtempSync(join(tmpdir(), "ccm-limited-"));
afterAll(() => rmSync(root, { recursive: true }));

/** Makes a `LimitedAccess` with a mount at `/mnt/dead` and at most two accesses to one path. */
function limited(maxTotal: number, limitMs: number): LimitedAccess {
  const mountOf = async (path: string) => Promise.resolve(path.startsWith("/mnt/dead") ? "/mnt/dead" : undefined);
  return new LimitedAccess({ maxTotal, maxPerPlace: 2, limitMs, mountOf });
}

/** Makes an access resolved by `answer`. `asked` returns the number of calls. */
function question(): { ask: () => Promise<string>; answer: (text: string) => void; asked: () => number } {
  let resolve: (text: string) => void = () => undefined;
  const promise = new Promise<string>((answer) => (resolve = answer));
  let asked = 0;
  return { ask: async () => ((asked += 1), promise), answer: resolve, asked: () => asked };
}

const failureOf = async (running: Promise<unknown>): Promise<string> =>
  running.then(
    () => "none",
    (error: unknown) => (error instanceof NoAnswerError ? `${error.code} ${error.message}` : String(error)),
  );

describe("access to files within a time limit", () => {
  it("an access within the limit returns the answer or the error of the file system", async () => {
    const access = limited(1, 60_000);
    expect(await access.run("/a", async () => Promise.resolve("text"))).toBe("text");
    await expect(access.run("/a", async () => Promise.reject(new Error("ENOENT")))).rejects.toThrow("ENOENT");
  });

  it("an access fails after the limit with an error that names the path and a remedy", async () => {
    const access = limited(2, 20);
    const said = await failureOf(access.run("/gone/project", question().ask));
    expect(said).toBe(
      "TIMEOUT /gone/project has not answered within 0.02 s: a network folder may be gone, or a FUSE program frozen. Mount it again, or use another folder.",
    );
  });

  it("a path that has not answered, and each path below, is not accessed again until it answers", async () => {
    const access = limited(4, 20);
    const [first, later] = [question(), question()];
    await failureOf(access.run("/gone", first.ask));
    for (const path of ["/gone", "/gone/.git", "/gone/a/../b"]) {
      expect(await failureOf(access.run(path, later.ask))).toContain("TIMEOUT /gone has not answered within");
    }
    expect(later.asked()).toBe(0);
    expect(await access.run("/gone-not", async () => Promise.resolve("other"))).toBe("other");
    expect(() => access.check("/gone/file", "cwd")).toThrow("cwd: /gone has not answered within");
    first.answer("back");
    await expect.poll(() => access.isStuck).toBe(false);
    later.answer("there");
    expect(await access.run("/gone", later.ask)).toBe("there");
  });

  it("accesses beyond the concurrency limit wait for their turn", async () => {
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

  it("every access fails at once while all running ones are stuck, and the log names the stuck paths", async () => {
    const access = limited(2, 20);
    const reported: string[][] = [];
    access.onStuck = (paths) => reported.push([...paths]);
    const [a, b, waiting, late] = [question(), question(), question(), question()];
    const running = [access.run("/a", a.ask), access.run("/b", b.ask), access.run("/c", waiting.ask)];
    const said = await Promise.all(running.map(failureOf));
    const full = "was not looked at: 2 other files or folders have not answered, which the log of the server names.";
    expect(said[2]).toContain(`TIMEOUT /c ${full}`);
    expect(await failureOf(access.run("/d", late.ask))).toContain(`TIMEOUT /d ${full}`);
    expect([waiting.asked(), late.asked()]).toEqual([0, 0]);
    expect(reported).toEqual([["/a"], ["/a", "/b"]]);
    a.answer("back");
    await expect.poll(async () => failureOf(access.run("/d", async () => Promise.resolve("d")))).toBe("none");
  });

  it("a path and the paths below it are accessed at most twice at a time", async () => {
    const access = limited(8, 20);
    const all = ["/gone", "/gone", "/gone", "/gone/a"].map((path) => ({ path, ...question() }));
    const said = await Promise.all(all.map(async ({ ask, path }) => failureOf(access.run(path, ask))));
    expect(said).toEqual(all.map(() => expect.stringContaining("TIMEOUT /gone has not answered") as string));
    expect(all.map(({ asked }) => asked())).toEqual([1, 1, 0, 0]);
  });

  it("a mount is accessed at most twice at a time, and not again while neither access has answered", async () => {
    const access = limited(8, 20);
    const all = ["/a", "/b", "/c", "/d"].map((name) => ({ path: `/mnt/dead${name}`, ...question() }));
    const said = await Promise.all(all.map(async ({ ask, path }) => failureOf(access.run(path, ask))));
    const paths = ["/mnt/dead/a", "/mnt/dead/b", "/mnt/dead", "/mnt/dead"];
    expect(said).toEqual(paths.map((path) => expect.stringContaining(`TIMEOUT ${path} has not answered`) as string));
    expect(all.map(({ asked }) => asked())).toEqual([1, 1, 0, 0]);
    expect(() => access.check("/mnt/dead/e")).toThrow("/mnt/dead has not answered");
    expect(await access.run("/home", async () => Promise.resolve("other"))).toBe("other");
    all[0]!.answer("back");
    await expect.poll(async () => failureOf(access.run("/mnt/dead/e", async () => Promise.resolve("e")))).toBe("none");
  });

  it("`otherwise` replaces an error of the file system, but not a missing answer", async () => {
    const access = limited(1, 20);
    expect(await stat(join(root, "missing")).catch(otherwise("missing"))).toBe("missing");
    const stuck = access.run("/gone", question().ask);
    expect(await failureOf(stuck.catch(otherwise("missing", "cwd")))).toContain("TIMEOUT cwd: /gone has not answered");
  });

  it("a small file of several chunks is read whole, and a file above the limit is refused", async () => {
    const file = join(root, "large");
    writeFileSync(file, "ü".repeat(100_000));
    expect(await readSmall(file, 200_000)).toBe("ü".repeat(100_000));
    await expect(readSmall(file, 199_999)).rejects.toThrow("holds more than 199999 bytes");
  });
});

/** Modules of `claude` and `security` with direct use of `node:fs`, and the files used. No client names such a file. */
const DIRECT = new Map([
  ["claude/claude-files.ts", "the package of this server"],
  ["claude/folder/conversation-writer.ts", "files of its own names in the configuration folder"],
  ["claude/sdk.ts", "the package of this server"],
  ["claude/version.ts", "the cache folder"],
  ["claude/supervise/detached-processes.ts", "/proc"],
  ["claude/supervise/guards.ts", "/proc"],
  ["claude/supervise/leftover-processes.ts", "/proc"],
  ["claude/supervise/machine.ts", "/proc"],
  ["claude/supervise/tagged-processes.ts", "/proc"],
  ["claude/supervise/tree.ts", "/proc"],
  ["claude/watch/copies.ts", "the state folder"],
  ["security/ancestors.ts", "/proc"],
  ["security/descriptors.ts", "/proc"],
  ["security/files/mounts.ts", "/proc"],
  ["security/key-file.ts", "the state folder"],
  ["security/installation-paths.ts", "the package of this server"],
  ["security/private-folder.ts", "the state folder"],
]);
/** Modules with calls of `node:fs` only inside the time limit. */
const WITHIN = [
  "claude/preflight/session-paths.ts",
  "claude/preflight/images.ts",
  "claude/watch/disk.ts",
  "claude/watch/stamp.ts",
  "claude/watch/walk-tree.ts",
  "security/files/limited.ts",
];

it("every module of claude/ and security/ that imports node:fs is in this table", () => {
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
