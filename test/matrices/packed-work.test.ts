import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { Work } from "../../src/pack/manifest.ts";
import { ENVIRONMENT, gitIn } from "../kit/git-repository.ts";
import { contents, status, usePackedWork } from "../kit/sessions/packed-work.ts";

/** Repositories of every state, and hostile ones, packed and unpacked. */

const kit = usePackedWork();

describe("work in progress", () => {
  it("a repository without a commit, a detached one and a shallow one are packed too", async () => {
    gitIn(kit.top)("init", "-q", "-b", "first");
    kit.write({ "a.txt": "a\n" });
    const [none, detached, shallow] = [join(kit.root, "none"), join(kit.root, "detached"), join(kit.root, "shallow")];
    await kit.unpack(await kit.pack(), none);
    expect(status(none)).toBe("## No commits yet on first\n?? a.txt\n");
    const whole = kit.folder("whole");
    kit.begin(whole);
    gitIn(whole)("commit", "-q", "--allow-empty", "-m", "second");
    gitIn(whole)("checkout", "-q", "--detach");
    expect(await kit.unpack(await kit.pack(whole), detached)).not.toContain("branch");
    expect(status(detached)).toBe("## HEAD (no branch)\n");
    const cut = join(kit.root, "cut");
    execFileSync("git", ["clone", "-q", "--depth", "1", `file://${whole}`, cut], { env: ENVIRONMENT, stdio: "ignore" });
    kit.write({ "b.txt": "changed\n" }, cut);
    await kit.unpack(await kit.pack(cut), shallow);
    expect(gitIn(shallow)("log", "--format=%s")).toBe("second\n");
    expect(readFileSync(join(shallow, "b.txt"), "utf8")).toBe("changed\n");
  });

  it("line endings that git converts stay as they are on disk", async () => {
    kit.write({ ".gitattributes": "*.txt text eol=crlf\n" });
    kit.begin();
    kit.write({ "a.txt": "one\r\ntwo\r\n", "new.txt": "x\r\ny\n" });
    const to = join(kit.root, "endings");
    await kit.unpack(await kit.pack(), to);
    expect(readFileSync(join(to, "a.txt"), "utf8")).toBe("one\r\ntwo\r\n");
    expect(readFileSync(join(to, "new.txt"), "utf8")).toBe("x\r\ny\n");
    expect(readFileSync(join(to, "b.txt"), "utf8")).toBe("b\r\n");
    expect(status(to)).toContain("?? new.txt");
  });

  it("the state of a submodule is packed, and its files are named as left out", async () => {
    const library = kit.folder("library");
    kit.begin(library);
    kit.begin();
    const git = gitIn(kit.top);
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "lib");
    git("commit", "-qm", "submodule");
    gitIn(join(kit.top, "lib"))("commit", "-q", "--allow-empty", "-m", "own");
    kit.write({ "lib/own.txt": "own work\n" });
    const packed = await kit.pack();
    const to = join(kit.root, "with-submodule");
    await kit.unpack(packed, to);
    expect(packed.leftOut.join()).toContain("only the commit of a submodule is packed, not its files");
    expect(packed.leftOut.join()).toContain("lib (");
    expect(readdirSync(join(to, "lib"))).toEqual([]);
    expect(gitIn(to)("ls-files", "--stage", "lib")).toBe(git("ls-files", "--stage", "lib"));
  });

  it("a folder outside git has no work, and a subfolder that of its whole repository", async () => {
    expect(await kit.find(kit.top)).toBeUndefined();
    kit.begin();
    expect((await kit.pack(join(kit.top, "deep"))).work).toMatchObject({ folder: "deep", branch: "main" });
  });

  it("files of a merge under way are packed as they are, without the index", async () => {
    kit.begin();
    const git = gitIn(kit.top);
    git("switch", "-qc", "other");
    kit.write({ "a.txt": "other\n" });
    git("commit", "-qam", "other");
    git("switch", "-q", "main");
    kit.write({ "a.txt": "main\n" });
    git("commit", "-qam", "main");
    expect(() => git("merge", "-q", "other")).toThrow("Command failed");
    const packed = await kit.pack();
    expect(packed.leftOut).toEqual(["The merge under way is not packed; its files are, with their conflict markers."]);
    const to = join(kit.root, "merge");
    await kit.unpack(packed, to);
    expect(contents(to)).toEqual(contents(kit.top));
  });
});

describe("a hostile repository", () => {
  it("no program that it names is run while it is packed, or unpacked into a clone", async () => {
    kit.begin();
    const [marker, git] = [join(kit.root, "was-run"), gitIn(kit.top)];
    const program = `touch ${marker}`;
    kit.write({ ".gitattributes": "* filter=evil diff=evil merge=evil\n", "a.txt": "changed\n", "new.txt": "n\n" });
    const packed = async () => {
      for (const key of ["filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"])
        git("config", key, program);
      for (const key of ["core.fsmonitor", "diff.external", "core.pager", "uploadpack.packObjectsHook"])
        git("config", key, program);
      for (const hook of ["post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"]) {
        kit.write({ [`.git/hooks/${hook}`]: `#!/bin/sh\n${program}\n` });
        chmodSync(join(kit.top, ".git/hooks", hook), 0o755);
      }
      return kit.pack();
    };
    const found = await packed();
    expect(existsSync(marker)).toBe(false);
    await kit.unpack(found, join(kit.root, "from-hostile"));
    git("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "stash", "list");
    rmSync(marker, { force: true });
    rmSync(join(kit.top, "new.txt"));
    rmSync(join(kit.top, ".gitattributes"));
    kit.write({ "a.txt": "a\n" });
    await kit.unpack(found, kit.top);
    expect(existsSync(marker)).toBe(false);
  });

  it.each(["..", "/etc", "a/../../b", "a\\b", "./a", "a/.."])(
    "the folder %j of a session is refused",
    async (folder) => {
      kit.begin();
      const { work } = await kit.pack();
      expect(Work.safeParse({ ...work, folder: "sub/deep" }).success).toBe(true);
      expect(Work.safeParse({ ...work, folder }).success).toBe(false);
    },
  );

  it.each(["..", ".git", "sub/.git/hooks", "/etc"])("a tree entry %j is refused", async (name) => {
    kit.begin();
    const packed = await kit.pack();
    // Written byte by byte, because git itself refuses to make such a tree.
    const git = gitIn(kit.top);
    const blob = git("hash-object", "-w", "a.txt").trim();
    const entry = Buffer.concat([Buffer.from(`100644 ${name}\0`), Buffer.from(blob, "hex")]);
    const make = (type: string, input: Buffer | string) =>
      execFileSync("git", ["-C", kit.top, "hash-object", "-t", type, "-w", "--literally", "--stdin"], {
        env: ENVIRONMENT,
        input,
        encoding: "utf8",
      }).trim();
    const who = "a <a@example.org> 1700000000 +0000";
    const commit = make("commit", `tree ${make("tree", entry)}\nauthor ${who}\ncommitter ${who}\n\nevil\n`);
    for (const ref of ["index", "files", "commit"])
      git("update-ref", `refs/session/${ref}`, ref === "commit" ? (packed.work.commit ?? "") : commit);
    const bundle = join(kit.folder("evil"), "bundle");
    git("bundle", "create", "-q", bundle, "refs/session/index", "refs/session/files", "refs/session/commit");
    const to = join(kit.folder("target"), "t");
    await expect(kit.unpack({ ...packed, bundle }, to)).rejects.toThrow(/git cannot unpack/);
    expect(readdirSync(dirname(to))).toEqual([]);
  });
});
