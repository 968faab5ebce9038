// Returns the licence notices of the bundled packages, for build.mjs.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

/** Packages that the MCP SDK has copied into its own files without the licence. A missing package fails the build. */
const COPIED = {
  "@cfworker/json-schema": `The MIT License (MIT)\n\nCopyright (c) 2020 Jeremy Danyow\n\n${MIT}`,
  "content-type": `The MIT License (MIT)\n\nCopyright (c) 2015 Douglas Christopher Wilson\n\n${MIT}`,
};

/** Returns the notices for a bundle of `modules`, given by path. */
export function noticesOf(modules) {
  const files = [...new Set(modules)].filter((path) => path.includes("node_modules") && existsSync(path));
  const notices = new Map();
  for (const file of files) {
    const { name, version, license, text } = packageOf(file);
    notices.set(`${name} ${version} (${license})`, text);
    for (const [, copied, itsVersion] of readFileSync(file, "utf8").matchAll(COPY)) {
      const known = copied.replace("+", "/");
      if (!Object.hasOwn(COPIED, known))
        throw new Error(`${file} has a copy of ${known}: add its licence to notices.mjs`);
      notices.set(`${known} ${itsVersion} (MIT)`, COPIED[known]);
    }
  }
  const parts = [...notices]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([title, text]) => `${title}\n\n${text.trim()}`);
  return (
    [`The files in this folder contain code of these packages.`, ...parts].join(`\n\n${"-".repeat(80)}\n\n`) + "\n"
  );
}

/** Marker by which the SDK's bundler names the origin of code. */
const COPY = /^\/\/#region .*node_modules\/\.pnpm\/([^@]*[^@/]|@[^@/]+\+[^@/]+)@([\d.]+)/gm;

function packageOf(file) {
  let folder = dirname(file);
  while (!/node_modules\/(@[^/]+\/)?[^/]+$/.test(folder.replaceAll("\\", "/"))) folder = dirname(folder);
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const found = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (found === undefined) throw new Error(`${name} has no licence file: add its text to notices.mjs`);
  return { name, version, license, text: readFileSync(join(folder, found), "utf8") };
}
