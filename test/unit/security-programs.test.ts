import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";

import { afterEach, beforeEach, expect, it } from "vitest";

import { findProgram, isExecutable, ownPath, programFolders, findProject } from "../../src/security/find-program.ts";

let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), "ccm-programs-"))));
afterEach(() => rmSync(root, { recursive: true }));

/** Makes an executable file `tool` in `folder`. */
function toolIn(folder: string, mode = 0o755): string {
  const file = join(root, folder, "tool");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "", { mode });
  return file;
}

it("`findProgram` takes the first executable file in PATH, but none in a relative folder or a folder of npm", async () => {
  const file = toolIn("machine");
  const ofRepository = dirname(toolIn("node_modules/.bin"));
  const notExecutable = dirname(toolIn("text", 0o644));
  const withFolder = dirname(dirname(toolIn("folder/tool")));
  const passedOver = [
    relative(process.cwd(), dirname(file)),
    ofRepository,
    `${ofRepository}/`,
    notExecutable,
    withFolder,
  ];
  expect(await findProgram("tool", { PATH: passedOver.join(":") })).toBeUndefined();
  const more = dirname(toolIn("more"));
  expect(await findProgram("tool", { PATH: [...passedOver, dirname(file), more].join(":") })).toBe(file);
});

it("a path is not executable if its folder cannot be read", async () => {
  symlinkSync("loop", join(root, "loop"));
  expect(await isExecutable(join(root, "loop", "tool"))).toBe(false);
});

it.each<[string, () => string]>([
  ["by its name", () => dirname(toolIn("project/node_modules/.bin"))],
  ["before it is made", () => join(root, "project/node_modules/.bin")],
  ["through a link", () => linkTo(dirname(toolIn("project/node_modules/.bin")))],
  ["through a link to a folder above it", () => join(linkTo(dirname(dirname(toolIn("a/node_modules/.bin")))), ".bin")],
  ["through `..`", () => `${dirname(toolIn("node_modules/.bin"))}/../../node_modules/.bin/.`],
])("a folder that npm puts into PATH is recognized %s", async (_, folder) => {
  expect(await programFolders([folder(), "/usr/bin"].join(delimiter))).toEqual(["/usr/bin"]);
});

function linkTo(target: string): string {
  const link = join(root, "link");
  symlinkSync(target, link);
  return link;
}

it.each<[string, string, () => string]>([
  ["the folder in which the server was started", "project", () => dirname(toolIn("project/bin"))],
  ["the repository around the start folder", "project/packages/one", () => dirname(toolIn("project/tools"))],
  [
    "the repository around the start folder, through a link",
    "project/packages/one",
    () => linkTo(dirname(toolIn("project/tools"))),
  ],
  ["the root of the repository", "project", () => dirname(toolIn("project"))],
])("PATH of the server's own programs begins with this Node and leaves out %s", async (_, cwd, folder) => {
  const machine = dirname(toolIn("machine"));
  mkdirSync(join(root, "project/.git"), { recursive: true });
  mkdirSync(join(root, cwd), { recursive: true });
  const PATH = [folder(), machine].join(delimiter);
  const project = await findProject(join(root, cwd));
  const own = await ownPath({ PATH }, join(root, cwd));
  expect(own.PATH?.split(delimiter)).toEqual([dirname(process.execPath), machine]);
  expect(await findProgram("tool", { PATH }, project)).toBe(join(machine, "tool"));
});

it("a link outside the project to a program inside it is passed over", async () => {
  const target = toolIn("project/tool");
  mkdirSync(join(root, "machine"));
  symlinkSync(target, join(root, "machine/tool"));
  const PATH = join(root, "machine");
  expect(await findProgram("tool", { PATH }, await findProject(dirname(target)))).toBeUndefined();
  expect(await findProgram("tool", { PATH })).toBe(join(PATH, "tool"));
});

it("neither / nor the user's home is taken for a project, so their folders stay in PATH", async () => {
  expect([await findProject("/"), await findProject(homedir())]).toEqual([[], []]);
});
