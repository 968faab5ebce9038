import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { ENVIRONMENT } from "../kit/git-repository.ts";
import { shortened, useWatchedFolders, type WatchedFolder } from "../kit/sessions/watched-folder.ts";

/** Turns that tell git to hide what they change. */

const { copy } = useWatchedFolders();

/** Runs a script of a shell in the folder. */
const sh = (at: WatchedFolder, script: string): void => {
  execFileSync("bash", ["-ec", script], { cwd: at.cwd, env: { ...ENVIRONMENT, AT: at.place }, stdio: "pipe" });
};

interface Hiding {
  readonly title: string;
  readonly before?: string;
  readonly turn: string;
  readonly files: readonly string[];
  /** Pattern of the sentence about what can have been missed. */
  readonly missed?: RegExp;
}

const SPARSE = "git update-index --skip-worktree a.txt";
const LINE = "changed a.txt +1 -0";

const HIDING: Hiding[] = [
  {
    title: "an entry of the index that a filter of one command made",
    turn: "cp a.txt $AT/old; echo evil > a.txt; sleep 0.05; echo 'a.txt filter=x' > $AT/attributes; git -c core.attributesFile=$AT/attributes -c filter.x.clean=\"cat $AT/old\" add a.txt; touch -d '1 hour' .git/index",
    files: ["changed a.txt +1 -3"],
  },
  {
    title: "equal size and time, where git is told not to look at the time of change",
    before: "git config core.trustCtime false; touch -d '1 hour ago' *.txt; git status",
    turn: "cp -p a.txt $AT/old; printf '9\\n2\\n3\\n' > a.txt; touch -r $AT/old a.txt",
    files: ["changed a.txt +1 -1"],
  },
  {
    title: "a sparse checkout that is none",
    turn: `${SPARSE}; echo x >> a.txt; touch .git/info/sparse-checkout`,
    files: [LINE],
    missed: /sparse checkout/,
  },
  {
    title: "a sparse checkout that claims files outside of its patterns",
    before:
      "git config core.sparseCheckout true; git config sparse.expectFilesOutsideOfPatterns true; echo '/*' > .git/info/sparse-checkout",
    turn: `${SPARSE}; echo x >> a.txt`,
    files: [LINE],
    missed: /sparse checkout/,
  },
  {
    title: "a file deleted as if a sparse checkout left it out",
    before: "touch .git/info/sparse-checkout",
    turn: `${SPARSE}; rm a.txt`,
    files: [],
    missed: /sparse checkout/,
  },
  {
    title: "a new file that .git/info/exclude hides",
    turn: "echo new.txt >> .git/info/exclude; echo x > new.txt",
    files: [],
    missed: /what git ignores has changed/,
  },
  {
    title: "a new file that a .gitignore hides",
    turn: "echo new.txt > sub/.gitignore; echo x > sub/new.txt",
    files: ["added sub/.gitignore +1 -0"],
    missed: /what git ignores has changed/,
  },
  {
    title: "a changed file with a name that is not UTF-8",
    before: "printf 1 > $'caf\\xe9'; git add -A; git commit -qm name",
    turn: "printf two > $'caf\\xe9'",
    files: [],
    missed: /not UTF-8/,
  },
  {
    title: "a deleted untracked file with a name that is not UTF-8",
    before: "printf 1 > $'caf\\xe9'",
    turn: "rm $'caf\\xe9'",
    files: [],
    missed: /not UTF-8/,
  },
  {
    title: "a file with a name that is not UTF-8, without git",
    before: "rm -rf .git; printf 1 > $'caf\\xe9'",
    turn: "printf two > $'caf\\xe9'",
    files: [],
    missed: /not UTF-8/,
  },
];

describe("a turn cannot hide a change", () => {
  it.each(HIDING)("behind $title", async ({ before, files, missed, turn }) => {
    const at = copy();
    if (before !== undefined) sh(at, before);
    const compared = await at.turn(() => sh(at, turn));
    expect(shortened(compared)).toEqual(files);
    expect(compared.complete).toBe(missed === undefined);
    expect(compared.notSeen.join("\n")).toMatch(missed ?? /^/);
  });

  it.runIf(process.platform === "linux")("behind a name that differs by case only", async () => {
    const at = copy();
    at.git("config", "core.ignoreCase", "true");
    expect(shortened(await at.turn(() => at.write("A.txt", "x\n")))).toEqual(["added A.txt +1 -0"]);
  });

  it("and files that git itself has written in the turn are not taken for changed", async () => {
    const at = copy();
    at.write(".gitattributes", "*.txt eol=crlf\n");
    at.commit("crlf");
    const compared = await at.turn(() =>
      sh(at, "rm a.txt b.txt; git checkout -q a.txt b.txt; echo x >> sub/c.txt; git add -A"),
    );
    expect(shortened(compared)).toEqual(["changed sub/c.txt +1 -0"]);
    expect(compared).toMatchObject({ by: "tree", complete: true });
  });
});
