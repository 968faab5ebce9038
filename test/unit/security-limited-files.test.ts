import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";

import { LimitedAccess, NoAnswerError, otherwise, stat } from "../../src/security/files/limited.ts";
import { readSmall } from "../../src/security/files/plain-file.ts";

const root = mkdtempSync(join(tmpdir(), "ccm-limited-"));
afterAll(() => rmSync(root, { recursive: true }));

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
    const access = new LimitedAccess({ most: 1, limitMs: 60_000 });
    expect(await access.run("/a", async () => Promise.resolve("text"))).toBe("text");
    await expect(access.run("/a", async () => Promise.reject(new Error("ENOENT")))).rejects.toThrow("ENOENT");
  });

  it("fails after the limit, names the path and says what to do", async () => {
    const access = new LimitedAccess({ most: 2, limitMs: 20 });
    const said = await failure(access.run("/gone/project", question().ask));
    expect(said).toBe(
      "TIMEOUT /gone/project did not answer within 0.02 s: a network folder may be gone, or a FUSE program frozen. Mount it again, or use another folder.",
    );
  });

  it("asks no second time at or below a path that has not answered, and again when it has", async () => {
    const access = new LimitedAccess({ most: 4, limitMs: 20 });
    const [first, later] = [question(), question()];
    await failure(access.run("/gone", first.ask));
    for (const path of ["/gone", "/gone/.git", "/gone/a/../b"]) {
      expect(await failure(access.run(path, later.ask))).toContain("TIMEOUT /gone has still not answered");
    }
    expect(later.asked()).toBe(0);
    expect(await access.run("/gone-not", async () => Promise.resolve("other"))).toBe("other");
    expect(() => access.check("/gone/file", "cwd")).toThrow("cwd: /gone has still not answered");
    first.answer("back");
    await expect.poll(() => access.isStuck).toBe(false);
    later.answer("there");
    expect(await access.run("/gone", later.ask)).toBe("there");
  });

  it("runs no more at a time than it may: others wait for their turn", async () => {
    const access = new LimitedAccess({ most: 2, limitMs: 60_000 });
    const all = ["/a", "/b", "/c", "/d"].map((path) => ({ path, ...question() }));
    const answers = all.map(async ({ ask, path }) => access.run(path, ask));
    expect(all.map(({ asked }) => asked())).toEqual([1, 1, 0, 0]);
    all[1]!.answer("b");
    await answers[1];
    expect(all.map(({ asked }) => asked())).toEqual([1, 1, 1, 0]);
    for (const { answer, path } of all) answer(path);
    expect(await Promise.all(answers)).toEqual(["/a", "b", "/c", "/d"]);
  });

  it("fails at once, waiting ones too, while all that may run have not answered; the log names them", async () => {
    const access = new LimitedAccess({ most: 2, limitMs: 20 });
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

  it("takes an error about a file for an answer, and no answer for none", async () => {
    const access = new LimitedAccess({ most: 1, limitMs: 20 });
    expect(await stat(join(root, "missing")).catch(otherwise("missing"))).toBe("missing");
    const stuck = access.run("/gone", question().ask);
    expect(await failure(stuck.catch(otherwise("missing", "cwd")))).toContain("TIMEOUT cwd: /gone did not answer");
  });

  it("reads a file that is larger than a part whole", async () => {
    const file = join(root, "large");
    writeFileSync(file, "ü".repeat(100_000));
    expect(await readSmall(file, 200_000)).toBe("ü".repeat(100_000));
    await expect(readSmall(file, 199_999)).rejects.toThrow("holds more than 199999 bytes");
  });
});
