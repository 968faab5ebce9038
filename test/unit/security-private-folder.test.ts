import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { existingFolders, createPrivateFolder, socketFolderFault } from "../../src/daemon/socket-folders.ts";
import { folderFault } from "../../src/security/private-folder.ts";

/** Folders of other users above the socket folder. Rows with `needsRoot` need root, which alone can give a folder away. */

const OTHER = 65_534;
const isRoot = process.geteuid?.() === 0;

let root: string;
beforeEach(() => void (root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-private-")))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Makes `root/above/run`, private to the user. `mode` is the mode of `above`. */
function makeFolder(mode = 0o755): { above: string; folder: string } {
  const above = join(root, "above");
  mkdirSync(join(above, "run"), { recursive: true, mode: 0o700 });
  chmodSync(above, mode);
  return { above, folder: join(above, "run") };
}

function makeLinked(owner?: number): string {
  const { above } = makeFolder();
  symlinkSync(above, join(root, "link"));
  if (owner !== undefined) lchownSync(join(root, "link"), owner, owner);
  return join(root, "link/run");
}

it.each<[string, () => string]>([
  ["below folders of the user", () => makeFolder().folder],
  ["in a sticky folder for everyone", () => makeFolder(0o1777).folder],
  ["through a link of the user", () => makeLinked()],
])("a folder %s is private to the user", async (_, folder) => {
  const path = folder();
  expect(await folderFault(path)).toBeUndefined();
  expect(await existingFolders([path])).toEqual([path]);
  expect(await socketFolderFault([path])).toBeUndefined();
  await createPrivateFolder(path);
});

interface Row {
  readonly how: string;
  readonly folder: () => string;
  readonly says: string;
  readonly needsRoot?: true;
}

const giveAway = (path: string) => (chownSync(path, OTHER, OTHER), path);

const REFUSED: readonly Row[] = [
  {
    how: "below a folder that everyone may write",
    folder: () => makeFolder(0o777).folder,
    says: "above can be changed",
  },
  {
    how: "below a folder that a group may write",
    folder: () => makeFolder(0o775).folder,
    says: "above can be changed",
  },
  {
    how: "below a folder that is two levels below one that everyone may write",
    folder: () => {
      mkdirSync(join(makeFolder(0o777).folder, "deep"), { mode: 0o700 });
      return join(root, "above/run/deep");
    },
    says: "above can be changed",
  },
  {
    how: "through a link into a folder that everyone may write",
    folder: () => {
      symlinkSync(makeFolder(0o777).folder, join(root, "link"));
      mkdirSync(join(root, "above/run/deep"), { mode: 0o700 });
      return join(root, "link/deep");
    },
    says: "above can be changed",
  },
  {
    how: "through links that lead in a circle",
    folder: () => {
      symlinkSync(join(root, "two"), join(root, "one"));
      symlinkSync(join(root, "one"), join(root, "two"));
      return join(root, "one/run");
    },
    says: "leads in a circle",
  },
  {
    how: "that is a link",
    folder: () => (symlinkSync(makeFolder().folder, join(root, "run")), join(root, "run")),
    says: "only you",
  },
  {
    how: "that a group may enter",
    folder: () => (chmodSync(makeFolder().folder, 0o710), join(root, "above/run")),
    says: "only you",
  },
  { how: "of another user", folder: () => giveAway(makeFolder().folder), says: "only you", needsRoot: true },
  {
    how: "below a folder of another user",
    folder: () => (giveAway(makeFolder().above), join(root, "above/run")),
    says: "above belongs to another user",
    needsRoot: true,
  },
  {
    how: "through a link of another user",
    folder: () => makeLinked(OTHER),
    says: "link belongs to another",
    needsRoot: true,
  },
];

describe.each(REFUSED.filter(({ needsRoot = false }) => isRoot || !needsRoot))("a folder $how", ({ folder, says }) => {
  it("an unsafe folder holds no sockets: clients and daemons refuse it, and doctor says why", async () => {
    const path = folder();
    expect(await existingFolders([path])).toEqual([]);
    await expect(createPrivateFolder(path)).rejects.toThrow(says);
    expect(await socketFolderFault([path])).toContain(says);
    expect(await socketFolderFault([path, join(root, "other")])).toBeUndefined();
  });
});

it("no folder is made where another user could redirect it, nor in place of a missing folder of the system", async () => {
  const { above } = makeFolder(0o777);
  await expect(createPrivateFolder(join(above, "new"))).rejects.toThrow("above can be changed");
  await expect(createPrivateFolder(join(root, "user/1000/product/key"))).rejects.toThrow("user does not exist");
  expect(await existingFolders([join(above, "new"), join(root, "user")])).toEqual([]);
});
