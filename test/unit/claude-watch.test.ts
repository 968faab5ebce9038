import { execFileSync } from "node:child_process";
import { chmodSync, renameSync, rmSync, symlinkSync, truncateSync, utimesSync } from "node:fs";
import { expect, it } from "vitest";
import { FILES, Place, shortened, useWatchedFolders, type WatchedFolder } from "../kit/sessions/watched-folder.ts";

const { copy, empty } = useWatchedFolders();

interface Row<Folder> {
  readonly title: string;
  /** Made before the turn. */
  readonly before?: (folder: Folder) => void;
  readonly turn: (folder: Folder) => void;
  readonly files: string[];
}

/** Each has a folder of its own in one repository, because a turn for each would take long. */
const ROWS: Row<Place>[] = [
  { title: "an edit", turn: (at) => at.write("a.txt", "1\n2\n4\n"), files: ["changed a.txt +1 -1"] },
  {
    title: "sed -i",
    turn: (at) => execFileSync("sed", ["-i", "s/2/x/", at.path("a.txt")]),
    files: ["changed a.txt +1 -1"],
  },
  {
    title: "a file that was changed and changed back",
    turn: (at) => {
      at.write("a.txt", "other");
      at.write("a.txt", FILES["a.txt"]);
    },
    files: [],
  },
  {
    title: "a dirty file that nobody touches",
    before: (at) => at.write("a.txt", "dirty\n"),
    turn: (at) => at.write("b.txt", ""),
    files: ["changed b.txt +0 -4"],
  },
  {
    title: "a dirty file that was changed again",
    before: (at) => at.write("a.txt", "1\n2\ndirty\n"),
    turn: (at) => at.write("a.txt", "1\n2\ndirty\nmore\n"),
    files: ["changed a.txt +1 -0"],
  },
  {
    title: "a dirty file that was changed and changed back",
    before: (at) => at.write("a.txt", "dirty\n"),
    turn: (at) => {
      at.write("a.txt", "other\n");
      at.write("a.txt", "dirty\n");
    },
    files: [],
  },
  {
    title: "a dirty file that was restored",
    before: (at) => at.write("a.txt", "1\n2\ndirty\n"),
    turn: (at) => at.git("checkout", "-q", "a.txt"),
    files: ["changed a.txt +1 -1"],
  },
  {
    title: "a staged file that was changed back in the work tree",
    turn: (at) => {
      at.write("a.txt", "staged\n");
      at.git("add", "a.txt");
      at.write("a.txt", FILES["a.txt"]);
    },
    files: [],
  },
  { title: "a new file", turn: (at) => at.write("new.txt", "1\n2\n"), files: ["added new.txt +2 -0"] },
  {
    title: "a new file that was staged",
    turn: (at) => {
      at.write("new.txt", "1\n2\n");
      at.git("add", "new.txt");
    },
    files: ["added new.txt +2 -0"],
  },
  {
    title: "an untracked file that was changed, and one that was deleted",
    before: (at) => {
      at.write("one.txt", "1\n");
      at.write("two.txt", "1\n2\n");
    },
    turn: (at) => {
      at.append("one.txt", "2\n");
      rmSync(at.path("two.txt"));
    },
    files: ["changed one.txt +1 -0", "deleted two.txt +0 -2"],
  },
  { title: "a deleted file", turn: (at) => rmSync(at.path("b.txt")), files: ["deleted b.txt +0 -4"] },
  {
    title: "a file that was removed from the index only",
    turn: (at) => at.git("rm", "-q", "--cached", "b.txt"),
    files: [],
  },
  {
    title: "a file moved without git",
    turn: (at) => renameSync(at.path("b.txt"), at.path("sub/moved.txt")),
    files: ["renamed b.txt to sub/moved.txt +0 -0"],
  },
  {
    title: "a file moved by git and changed",
    turn: (at) => {
      at.git("mv", "b.txt", "moved.txt");
      at.append("moved.txt", "b5\n");
    },
    files: ["renamed b.txt to moved.txt +1 -0"],
  },
  {
    title: "a binary file",
    turn: (at) => at.write("bin.dat", Buffer.from([0, 9, 9, 9])),
    files: ["changed bin.dat"],
  },
  {
    title: "links, new and in place of a file",
    turn: (at) => {
      symlinkSync("/etc/passwd", at.path("link"));
      rmSync(at.path("b.txt"));
      symlinkSync("a.txt", at.path("b.txt"));
    },
    files: ["changed b.txt", "added link"],
  },
  { title: "a new mode", turn: (at) => chmodSync(at.path("a.txt"), 0o755), files: ["changed a.txt +0 -0"] },
  {
    title: "a file with a new time only",
    turn: (at) => utimesSync(at.path("a.txt"), 1, 1),
    files: [],
  },
  {
    title: "an untracked folder",
    turn: (at) => {
      at.write("deep/er/one.txt", "1\n");
      at.write("deep/two.txt", "2\n");
    },
    files: ["added deep/er/one.txt +1 -0", "added deep/two.txt +1 -0"],
  },
  { title: "an ignored file", turn: (at) => at.write("ignored/x.txt", "1\n"), files: [] },
  {
    title: "200 MB",
    turn: (at) => {
      at.write("big.bin", "");
      truncateSync(at.path("big.bin"), 200_000_000);
    },
    files: ["added big.bin"],
  },
  {
    title: "200 MB that were there before and grew",
    before: (at) => {
      at.write("big.bin", "");
      truncateSync(at.path("big.bin"), 200_000_000);
    },
    turn: (at) => truncateSync(at.path("big.bin"), 200_000_001),
    files: ["changed big.bin"],
  },
  {
    title: "names with blanks, quotes, line breaks and other letters",
    turn: (at) => {
      at.write('test/a "b"\n ü.test.ts', 'it.skip("x", () => {});\n');
      at.git("add", ".");
      at.write("- dash :(glob)*", "x\n");
    },
    files: ["added - dash :(glob)* +1 -0", 'added test/a "b"\n ü.test.ts +1 -0 skipped 1'],
  },
];

/** Each has a repository of its own: tests with equal names count as moved, and a commit takes all files. */
const ALONE: Row<WatchedFolder>[] = [
  {
    title: "a pipe in place of a dirty file",
    before: (at) => at.write("a.txt", "dirty\n"),
    turn: (at) => {
      rmSync(at.path("a.txt"));
      execFileSync("mkfifo", [at.path("a.txt"), at.path("pipe")]);
    },
    files: ["changed a.txt"],
  },
  {
    title: "a pipe in place of a clean file, beside other changes and a commit",
    turn: (at) => {
      at.append("b.txt", "b5\n");
      at.commit("one");
      at.append("sub/c.txt", "d\n");
      rmSync(at.path("a.txt"));
      execFileSync("mkfifo", [at.path("a.txt")]);
    },
    files: ["changed a.txt", "changed b.txt", "changed sub/c.txt"],
  },
  { title: "nothing done", turn: () => undefined, files: [] },
  {
    title: "a dirty file that was committed as it was",
    before: (at) => at.write("a.txt", "dirty\n"),
    turn: (at) => at.commit("dirty"),
    files: [],
  },
  {
    title: "tests that were deleted, skipped and moved",
    turn: (at) => {
      at.write("test/sums.test.ts", 'it.skip("adds", () => {});\nit.only("minuses", () => {});\n');
      at.write("test/more.test.ts", "// none\n");
      at.write("test/new.test.ts", 'it("divides", () => {});\n');
    },
    files: [
      "changed test/more.test.ts +1 -1 emptied 1 removed 1",
      "added test/new.test.ts +1 -0",
      "changed test/sums.test.ts +2 -3 skipped 1 only 1",
    ],
  },
  {
    title: "a test file that was dirty before",
    before: (at) => at.append("test/sums.test.ts", 'it("new", () => {});\n'),
    turn: (at) => at.write("test/sums.test.ts", FILES["test/sums.test.ts"]),
    files: ["changed test/sums.test.ts +0 -1 removed 1"],
  },
  {
    title: "a test file that was deleted",
    turn: (at) => rmSync(at.path("test/sums.test.ts")),
    files: ["deleted test/sums.test.ts +0 -3 deleted 1"],
  },
];

const compareRows = async () => {
  const at = empty();
  const places = ROWS.map((_, row) => new Place(at.path(String(row))));
  for (const [row, place] of places.entries()) {
    for (const [path, text] of Object.entries(FILES)) place.write(path, path === "b.txt" ? unique(text, row) : text);
  }
  at.git("init", "-q", "-b", "main");
  at.commit("begin");
  const each = (name: "before" | "turn") => {
    for (const [row, place] of places.entries()) ROWS[row]?.[name]?.(place);
  };
  each("before");
  return at.turn(() => each("turn"));
};

/** Without equal lines in two rows, no file can be taken for one that was moved from another row. */
const unique = (text: string, row: number) => text.replaceAll("\n", ` of ${String(row)}\n`);

let compared: ReturnType<typeof compareRows> | undefined;

it.each(ROWS.map((row, number) => ({ ...row, number })))(
  "after $title, the comparison lists $files",
  async ({ files, number }) => {
    compared ??= compareRows();
    const found = await compared;
    const below = new RegExp(`(?<= )${String(number)}/`, "g");
    const own = shortened(found).filter((text) => text.search(below) >= 0);
    expect(own.map((text) => text.replaceAll(below, ""))).toEqual(files);
    expect(found).toMatchObject({ by: "tree", complete: true });
  },
);

it.each(ALONE)("after $title in a repository, the comparison lists $files", async ({ before, files, turn }) => {
  const at = copy();
  before?.(at);
  const found = await at.turn(() => turn(at));
  expect(shortened(found)).toEqual(files);
  expect(found).toMatchObject({ by: "tree", complete: true });
});
