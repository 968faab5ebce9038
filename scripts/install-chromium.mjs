// Finds the Chromium for the browser tests, and installs a missing Chromium on Debian if the user may install packages.
// scripts/start-chromium.mjs starts the browser. By hand, `node scripts/install-chromium.mjs` prints the path.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { install } from "./debian.mjs";

/** Headless shells first: without a user interface, a shell opens a window with a third of the work. */
const NAMES = [
  "chromium-headless-shell",
  "chrome-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "chrome",
  "microsoft-edge",
];

/** Locations of browsers outside the PATH. */
const PLACES = {
  darwin: ["Google Chrome", "Chromium", "Microsoft Edge"].map(
    (name) => `/Applications/${name}.app/Contents/MacOS/${name}`,
  ),
  win32: ["PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"].flatMap((name) => {
    const folder = process.env[name];
    if (!folder) return [];
    return ["Google/Chrome/Application/chrome.exe", "Microsoft/Edge/Application/msedge.exe"].map((path) =>
      join(folder, path),
    );
  }),
};

const PACKAGES = ["chromium-headless-shell", "fonts-dejavu-core"];

/** Returns the path of an executable. Throws an Error with the remedy. */
export function chromium() {
  const { CHROMIUM_PATH: wanted } = process.env;
  if (wanted) {
    if (isExecutable(wanted)) return wanted;
    throw new Error(
      `CHROMIUM_PATH is ${wanted}, which cannot be run. Set it to the executable of a Chromium, or not at all.`,
    );
  }
  return found() ?? installed();
}

function found() {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  const suffix = process.platform === "win32" ? ".exe" : "";
  const inPath = NAMES.flatMap((name) => folders.map((folder) => join(folder, name + suffix)));
  return [...inPath, ...(PLACES[process.platform] ?? [])].find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function installed() {
  const seconds = install({ packages: PACKAGES, size: "100 MB", what: "Chromium", whatToDo: WHAT_TO_DO });
  const path = found();
  if (path === undefined) throw new Error(`apt-get has installed Chromium, but it is not in the PATH. ${WHAT_TO_DO}`);
  console.error(`Chromium was installed in ${String(seconds)} s: ${path}`);
  return path;
}

const WHAT_TO_DO =
  "Install Chromium or Chrome (Debian: apt-get install chromium), or set CHROMIUM_PATH to its executable; " +
  "without it the tests of the console cannot run, all others do: npx vitest run --project '!browser'.";

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    console.log(chromium());
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
