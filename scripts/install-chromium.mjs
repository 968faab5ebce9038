// Finds the Chromium that the browser tests run in, and installs it on Debian where there is none and it may.
// vitest calls setup() before the project "browser". By hand: node scripts/install-chromium.mjs prints its path.
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge"];

/** Where browsers are that are not in the PATH. */
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

const PACKAGES = ["chromium", "fonts-dejavu-core"];

/** Before the tests: they get the path as inject("chromium"). */
export function setup({ provide }) {
  provide("chromium", chromium());
}

/** The path of an executable; throws an Error that says what to do. */
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
  const rights = rightsToInstall();
  if (!rights) throw new Error(`There is no Chromium on this machine. ${WHAT_TO_DO}`);
  console.error(`No Chromium here: installing ${PACKAGES.join(" and ")} with apt-get, about 400 MB.`);
  const began = Date.now();
  const apt = (...words) => run([...rights, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", ...words]);
  apt("update");
  apt("install", "-y", "--no-install-recommends", ...PACKAGES);
  const path = found();
  if (path === undefined) throw new Error(`apt-get has installed Chromium, but it is not in the PATH. ${WHAT_TO_DO}`);
  console.error(`Chromium was installed in ${String(Math.round((Date.now() - began) / 1000))} s: ${path}`);
  return path;
}

const WHAT_TO_DO =
  "Install Chromium or Chrome (Debian: apt-get install chromium), or set CHROMIUM_PATH to its executable; " +
  "without it the tests of the console cannot run, all others do: npx vitest run --project '!browser'.";

/** The words before a command that root may run; undefined where apt-get or the right to use it is missing. */
function rightsToInstall() {
  if (!succeeds("apt-get", ["--version"])) return undefined;
  if (process.getuid?.() === 0) return [];
  return succeeds("sudo", ["-n", "true"]) ? ["sudo", "-n"] : undefined;
}

function succeeds(command, words) {
  return spawnSync(command, words, { stdio: "ignore" }).status === 0;
}

function run([command, ...words]) {
  const { error, status, stderr } = spawnSync(command, words, {
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  if (status === 0) return;
  const why = error ? String(error) : stderr.trim().split("\n").slice(-5).join("\n");
  throw new Error(`Chromium could not be installed: ${[command, ...words].join(" ")} failed.\n${why}\n${WHAT_TO_DO}`);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    console.log(chromium());
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
