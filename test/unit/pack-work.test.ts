import { chmodSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { gitIn } from "../kit/git-repository.ts";
import { contents, status, usePackedWork } from "../kit/sessions/packed-work.ts";

/** Work in progress, packed and unpacked. Further repositories: test/matrices/packed-work.test.ts. */

const kit = usePackedWork();

describe("work in progress", () => {
  it("a new folder gets commit, branch, staged, changed, deleted and untracked files, binaries, modes and links", async () => {
    kit.begin();
    const git = gitIn(kit.top);
    git("switch", "-qc", "feature");
    git("remote", "add", "origin", "git@example.org:a/b.git");
    kit.write({ "a.txt": "staged\n", "staged-new.txt": "n\n", "deep/bin": Buffer.from([0, 255, 10, 13, 0, 1]) });
    git("add", "a.txt", "staged-new.txt");
    kit.write({
      "a.txt": "staged, then changed\r\n",
      "b.txt": "changed\n",
      ".gitignore": "*.log\n",
      "x.log": "ignored",
    });
    kit.write({ "new file \n.txt": "new\n", "caf\u00e9/\u00fc.txt": "u\n", empty: "" });
    chmodSync(join(kit.top, "run.sh"), 0o755);
    rmSync(join(kit.top, "gone.txt"));
    rmSync(join(kit.top, "deep/one.txt"));
    symlinkSync("/etc/passwd", join(kit.top, "link"));
    symlinkSync("deep", join(kit.top, "dir-link"));
    const packed = await kit.pack();
    const to = join(kit.root, "not", "there", "yet");
    expect(await kit.unpack(packed, to)).toContain("on branch feature, at commit");
    const { "x.log": _, ...expected } = contents(kit.top);
    expect(contents(to)).toEqual(expected);
    expect(status(to)).toBe(status(kit.top));
    expect(gitIn(to)("rev-parse", "HEAD")).toBe(git("rev-parse", "HEAD"));
    expect(gitIn(to)("diff", "--cached")).toBe(git("diff", "--cached"));
    expect(gitIn(to)("for-each-ref", "--format=%(refname)")).toBe("refs/heads/feature\n");
    expect(gitIn(to)("remote", "-v")).toContain("git@example.org:a/b.git");
    expect(gitIn(to)("fsck", "--strict", "--no-dangling")).toBe("");
    expect(packed.leftOut).toEqual(["Not packed, because git ignores them: x.log."]);
    // Nothing of the origin has changed.
    expect(git("for-each-ref", "--format=%(refname)")).toBe("refs/heads/feature\nrefs/heads/main\n");
  });

  it("names that are not UTF-8 stay as they are, and what git overlooks or an operation keeps is told", async () => {
    kit.begin();
    const git = gitIn(kit.top);
    const named = (folder: string, name: string) =>
      Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, "latin1")]);
    writeFileSync(named(kit.top, "caf\u00e9"), "committed\n");
    git("add", ".");
    git("commit", "-qm", "one name in Latin-1");
    writeFileSync(named(kit.top, "caf\u00e9"), "changed\n");
    writeFileSync(named(kit.top, "new\u00e9"), "new\n");
    git("update-index", "--assume-unchanged", "a.txt");
    git("update-ref", "MERGE_HEAD", "HEAD");
    kit.write({ "a.txt": "overlooked\n", "git~1": "short for .git on Windows\n" });
    const packed = await kit.pack();
    expect(packed.leftOut).toEqual([
      "Not packed, because other machines could take their names for .git: git~1.",
      "Not packed, because git was told to overlook their changes: a.txt.",
      "The merge under way is not packed; its files are.",
    ]);
    const to = join(kit.root, "latin");
    await kit.unpack(packed, to);
    const read = ["caf\u00e9", "new\u00e9"].map((name) => readFileSync(named(to, name), "utf8"));
    expect(read).toEqual(["changed\n", "new\n"]);
  });

  it("files that are small only in a bundle are refused", async () => {
    kit.begin();
    const git = gitIn(kit.top);
    kit.write({ large: Buffer.alloc(8 * 1024 ** 2) });
    git("add", "large");
    let tree = git("write-tree").trim();
    for (let level = 0; level < 3; level += 1) {
      git("read-tree", "--empty");
      for (let at = 0; at < 10; at += 1) git("read-tree", `--prefix=${String(at)}/`, tree);
      tree = git("write-tree").trim();
    }
    git("update-ref", "HEAD", git("commit-tree", tree, "-m", "1,000 times 8 MiB").trim());
    git("read-tree", "--empty");
    const packed = await kit.pack();
    await expect(kit.unpack(packed, join(kit.root, "small"))).rejects.toThrow("its files would be too large: 8 GiB");
  });

  it("gets the files if it is clean, and keeps its branches", async () => {
    kit.begin();
    const to = kit.clone();
    gitIn(to)("switch", "-qc", "mine");
    gitIn(to)("commit", "-q", "--allow-empty", "-m", "mine");
    const mine = gitIn(to)("rev-parse", "mine");
    gitIn(to)("branch", "-qf", "main", "mine");
    kit.write({ "a.txt": "changed\n", "new.txt": "n\n" });
    rmSync(join(kit.top, "gone.txt"));
    const told = await kit.unpack(await kit.pack(), to);
    expect(told).toContain("on branch session-0b0e5a6c");
    expect(contents(to)).toEqual(contents(kit.top));
    expect(gitIn(to)("rev-parse", "mine", "main")).toBe(mine + mine);
    expect(gitIn(to)("rev-parse", "HEAD")).toBe(gitIn(kit.top)("rev-parse", "HEAD"));
    expect(gitIn(to)("for-each-ref", "refs/session")).toBe("");
  });

  it("is refused with changes, without the commit, or with an ignored file in the way", async () => {
    kit.begin();
    const to = kit.clone();
    kit.write({ "new.log": "n\n" });
    const packed = await kit.pack();
    kit.write({ "x.txt": "x" }, to);
    await expect(kit.unpack(packed, to)).rejects.toThrow("has changes that are not committed");
    rmSync(join(to, "x.txt"));
    kit.write({ ".git/info/exclude": "*.log\n", "new.log": "mine" }, to);
    await expect(kit.unpack(packed, to)).rejects.toThrow("has a file new.log");
    expect(readFileSync(join(to, "new.log"), "utf8")).toBe("mine");
    const other = kit.folder("other");
    kit.begin(other);
    gitIn(other)("commit", "-q", "--allow-empty", "-m", "more");
    await expect(kit.unpack(await kit.pack(other), to)).rejects.toThrow("not the commit");
    const plain = kit.folder("plain");
    kit.write({ "x.txt": "x" }, plain);
    await expect(kit.unpack(packed, plain)).rejects.toThrow("is not the top of a repository");
    expect(readdirSync(plain)).toEqual(["x.txt"]);
  });
});
