// Finds the tests that show each parameter of each tool, by titles: a title names tool and parameter in backticks, the tool in
// its own text or in an outer `describe`. "an option of `claude_code`" > "ends the turn: `maxTurns`" shows `maxTurns`. Finds
// titles by pattern, which is safe with prettier's layout; a missed title makes the check fail, not pass.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const DESCRIBE = /^( *)describe\b/;
const END = /^( *)\}\);$/;
const OFF = /\b(?:describe|it|test)\.(?:skip|todo)\b/;
const TITLE = /(?:^\s*|\()"((?:[^"\\]|\\.)*)"(?=,|$)/;
const NAMED = /`([A-Za-z_]\w*)`/g;

/** Folders whose tests call tools through the built server. */
const TESTED = ["test/acceptance", "test/claude", "test/server"];

/** Returns a map per tool, from names to the files whose tests show them. Names other than parameters are harmless. */
export function shownByTests(root, tools) {
  const shown = new Map(tools.map((tool) => [tool, new Map()]));
  for (const file of TESTED.flatMap((folder) => testsIn(root, folder))) {
    for (const names of titlesIn(readFileSync(join(root, file), "utf8"))) {
      for (const tool of tools.filter((each) => names.includes(each))) note(shown.get(tool), names, file);
    }
  }
  return shown;
}

function testsIn(root, folder) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => `${folder}/${name}`);
}

function note(parameters, names, file) {
  for (const name of names) parameters.set(name, new Set([...(parameters.get(name) ?? []), file]));
}

/** Returns the names in the title of each test and in its outer titles. */
function titlesIn(text) {
  const around = [];
  const titles = [];
  for (const line of text.split("\n")) {
    const [, end] = END.exec(line) ?? [];
    if (end === around.at(-1)?.indent) around.pop();
    const title = OFF.test(line) ? null : TITLE.exec(line);
    if (!title) continue;
    const names = [...title[1].matchAll(NAMED)].map(([, name]) => name);
    const block = DESCRIBE.exec(line);
    if (block) around.push({ indent: block[1], names });
    else titles.push([...around.flatMap((outer) => outer.names), ...names]);
  }
  return titles;
}
