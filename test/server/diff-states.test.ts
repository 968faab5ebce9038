import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { gitIn, hostileRepository } from "../kit/git-repository.ts";

let hostile: Awaited<ReturnType<typeof hostileRepository>>;
beforeAll(async () => {
  hostile = await hostileRepository();
});
afterAll(async () => hostile.world.close());

const DiffAnswer = z.looseObject({
  git: z.looseObject({
    commit: z.string().optional(),
    diff: z.string().optional(),
    untracked: z.array(z.string()).optional(),
    refused: z.string().optional(),
    truncated: z.boolean().optional(),
  }),
});

async function readDiff() {
  return DiffAnswer.parse(JSON.parse(await hostile.diff())).git;
}

/** Includes a file with the secret `fish`. An attacker can include any file, even a file closed to the reader. */
function includeFile(setting: string): void {
  writeFileSync(hostile.dotGit("other"), `[core]\n\t${setting}sword'fish'\n`);
  hostile.config("[include]\n\tpath = other\n");
}

describe("`claude_code_session` `diff` of a repository that git cannot read", () => {
  const states: readonly (readonly [string, string | RegExp, () => void])[] = [
    [
      "of another owner",
      /detected dubious ownership in repository at '.*'.* git config --global --add safe\.directory /,
      () => writeFileSync(hostile.stranger, ""),
    ],
    ["with a broken configuration", /bad config line \d+ in file .*config\./, () => hostile.config("[core\n")],
    [
      "under a broken configuration of the user",
      /bad config line 1 in file .*gitconfig\./,
      () => writeFileSync(hostile.userConfig, "[core\n"),
    ],
    [
      "with a value that git does not take",
      "bad config variable 'diff.context'",
      () => hostile.config("[diff]\n\tcontext = -1\n"),
    ],
    [
      "with a wrong value, and leaves out the value",
      "bad boolean config value for 'core.bare'.",
      () => includeFile("bare = "),
    ],
    [
      "with a long wrong value, and leaves out the value",
      "bad boolean config value.",
      () => includeFile(`bare = ${"fish ".repeat(999)}`),
    ],
    [
      "with a wrong number, and leaves out the number",
      "bad numeric config value for 'core.abbrev':",
      () => includeFile("abbrev = "),
    ],
    [
      "with a wrong mode, and leaves out the mode",
      "invalid mode for object creation.",
      () => includeFile("createObject = "),
    ],
    [
      "with an extension that git does not know",
      "unknown repository extension found: new",
      () => hostile.config("[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tnew = true\n"),
    ],
    ["with a damaged index", "index file smaller than expected", () => writeFileSync(hostile.dotGit("index"), "x")],
    [
      "without HEAD",
      /not a git repository.* There is \/.*\.git, which git cannot use\./,
      () => rmSync(hostile.dotGit("HEAD")),
    ],
    [
      "with an empty .git",
      /not a git repository.* There is \/.*\.git, which git cannot use\./,
      () => {
        rmSync(hostile.dotGit(), { recursive: true });
        mkdirSync(hostile.dotGit());
      },
    ],
    [
      "with a branch that is not a commit",
      "HEAD names no commit",
      () => writeFileSync(hostile.dotGit("refs", "heads", "main"), "x\n"),
    ],
    [
      "without its last commit",
      /bad object [0-9a-f]{40}\./,
      () => {
        const commit = hostile.git("rev-parse", "HEAD").trim();
        rmSync(hostile.dotGit("objects", commit.slice(0, 2), commit.slice(2)));
      },
    ],
    ["without a work tree", "must be run in a work tree", () => hostile.config("[core]\n\tbare = true\n")],
    [
      "whose data are in the folder itself",
      "The folder lies in the data of a repository",
      () => {
        hostile.layBare();
      },
    ],
    [
      "linked to a repository that is gone",
      "not a git repository: /nowhere/.git/worktrees/x",
      () => {
        rmSync(hostile.dotGit(), { recursive: true });
        writeFileSync(hostile.dotGit(), "gitdir: /nowhere/.git/worktrees/x\n");
      },
    ],
    [
      "with a .git file of any text",
      "invalid gitfile format",
      () => {
        rmSync(hostile.dotGit(), { recursive: true });
        writeFileSync(hostile.dotGit(), "x\n");
      },
    ],
  ];

  it.each(states)("a diff tells git's reason for a repository %s", async (_, reason, make) => {
    hostile.begin();
    make();
    const { refused } = await readDiff();
    expect(refused).toMatch(reason);
    expect(refused).toMatch(/ The changes are not shown\.$/);
    expect(refused).not.toContain("fish");
  });
});

describe("`claude_code_session` `diff` of a repository in a special state", () => {
  it("a diff shows all files as added before the first commit", async () => {
    hostile.begin();
    rmSync(hostile.dotGit("refs", "heads", "main"));
    writeFileSync(join(hostile.cwd, "c.txt"), "new\n");
    const { commit, diff, untracked } = await readDiff();
    expect(commit).toBeUndefined();
    expect(diff).toMatch(/new file mode 100644\n.*\n--- \/dev\/null\n\+\+\+ b\/a\.txt\n@@ .*\n\+changed\n/);
    expect(diff).toContain("+++ b/b.txt");
    expect(untracked).toEqual(["c.txt"]);
  });

  it("a diff shows the commit that a submodule has moved to, and no untracked files in it", async () => {
    hostile.begin();
    hostile.moveSubmodule();
    const inner = join(hostile.cwd, "inner");
    const { diff } = await readDiff();
    expect(diff).toContain(`\n+Subproject commit ${gitIn(inner)("rev-parse", "HEAD")}`);
    hostile.git("commit", "-qam", "take it up");
    writeFileSync(join(inner, "dirt"), "");
    expect(hostile.git("status", "--short")).toContain("inner");
    expect(await readDiff()).toMatchObject({ diff: "", untracked: [] });
  });

  it("a diff shows no deletion of files that a sparse checkout leaves out", async () => {
    hostile.begin();
    mkdirSync(join(hostile.cwd, "far"));
    renameSync(join(hostile.cwd, "b.txt"), join(hostile.cwd, "far", "b.txt"));
    hostile.git("add", ".");
    hostile.git("commit", "-qm", "far");
    hostile.git("sparse-checkout", "set", "--cone", "--sparse-index");
    writeFileSync(join(hostile.cwd, "a.txt"), "again\n");
    const { diff } = await readDiff();
    expect(diff).toContain("+again");
    expect(diff).not.toContain("b.txt");
  });

  it("a diff has the same text whatever the configuration of git is", async () => {
    hostile.begin();
    writeFileSync(join(hostile.cwd, "ä.txt"), "1\n\n\n\n\n2\n");
    for (const name of ["c", "d"]) writeFileSync(join(hostile.cwd, name), `${name}\n`.repeat(20));
    hostile.git("add", ".");
    hostile.git("commit", "-qm", "more");
    for (const name of ["c", "d"]) {
      rmSync(join(hostile.cwd, name));
      writeFileSync(join(hostile.cwd, `${name}-moved`), `${name}\n`.repeat(20).concat("more\n"));
    }
    hostile.git("add", ".");
    writeFileSync(join(hostile.cwd, "a.txt"), "again\n");
    writeFileSync(join(hostile.cwd, "ä.txt"), "1\n\n\n\n\n3\n");
    writeFileSync(join(hostile.cwd, "b.txt"), "b\n");
    const { diff } = await readDiff();
    expect(diff).toContain("--- a/a.txt\n+++ b/a.txt\n");
    expect(diff).toContain("--- a/ä.txt\n+++ b/ä.txt\n");
    expect(diff?.match(/rename to/g)).toHaveLength(2);
    writeFileSync(
      hostile.userConfig,
      `[diff]
	noPrefix = true
	mnemonicPrefix = true
	srcPrefix = x/
	dstPrefix = y/
	orderFile = /nowhere
	context = 0
	interHunkContext = 9
	suppressBlankEmpty = true
	autoRefreshIndex = false
	renames = copies
	renameLimit = 1
	submodule = log
	external = false
	wordRegex = .
	relative = true
	algorithm = histogram
	colorMoved = zebra
[color]
	ui = always
	diff = always
[core]
	pager = false
	quotePath = true
	abbrev = 40
	fsmonitor = false
[pager]
	diff = false
[submodule]
	recurse = true
`,
    );
    writeFileSync(join(hostile.cwd, "b.txt"), "b\n");
    expect((await readDiff()).diff).toBe(diff);
    writeFileSync(hostile.userConfig, "[diff]\n\tmnemonicPrefix = true\n");
    expect((await readDiff()).diff).toBe(diff);
  });

  it("a diff with many new files or a large file is cut, and says so", async () => {
    hostile.begin();
    for (let at = 0; at < 100; at += 1) writeFileSync(join(hostile.cwd, `${"n".repeat(200)}${String(at)}`), "");
    const many = await readDiff();
    expect(many).toMatchObject({ truncated: true, diff: expect.stringContaining("+changed") as unknown });
    expect(many.untracked?.length).toBeGreaterThan(20);
    hostile.begin();
    writeFileSync(join(hostile.cwd, "b.txt"), "line\n".repeat(400_000));
    expect(await readDiff()).toMatchObject({ truncated: true, diff: expect.stringContaining("+line") as unknown });
  });
});
