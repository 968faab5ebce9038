// Validates the files of catalogues like each catalogue does, offline.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { validateManifest } from "@anthropic-ai/mcpb";
import { validate } from "dockerfile-utils";
import { z } from "zod";
import { PLACES } from "./files.mjs";
import { ServerJson } from "./server-json.mjs";

/** Returns the faults, one per line. `claude` is the path of a Claude Code. */
export function faultsIn(root, manifest, claude) {
  return [
    ...registryFaults(root, manifest),
    ...bundleFaults(root),
    ...containerFaults(root),
    ...pluginFaults(root, claude, join(root, PLACES.plugin), ["--profile", "directory"]),
    ...pluginFaults(root, claude, root, []),
  ];
}

function registryFaults(root, { mcpName, name }) {
  const text = readFileSync(join(root, PLACES.registry), "utf8");
  const { data, error } = ServerJson.safeParse(JSON.parse(text));
  if (error) return [`${PLACES.registry}: ${z.prettifyError(error)}`];
  // The registry compares `name` with `mcpName` of the package on npm.
  const fits = data.name === mcpName && data.packages.every(({ identifier }) => identifier === name);
  return fits ? [] : [`${PLACES.registry}: name and identifier must be mcpName and name of package.json`];
}

/** Copies the icon as well, because the validator looks for the icon beside the manifest. */
function bundleFaults(root) {
  const folder = mkdtempSync(join(tmpdir(), "ccm-bundle-"));
  try {
    for (const file of [PLACES.bundle, PLACES.icon]) copyFileSync(join(root, file), join(folder, basename(file)));
    const [isValid, said] = quietly(() => validateManifest(folder));
    return isValid ? [] : [`${PLACES.bundle}: ${said}`];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Runs `work` without output to the console. Returns its result and its output. */
export function quietly(work) {
  const { error, log } = console;
  const said = [];
  console.log = console.error = (...words) => void said.push(words.join(" "));
  try {
    return [work(), said.join("\n")];
  } finally {
    Object.assign(console, { error, log });
  }
}

function containerFaults(root) {
  const found = validate(readFileSync(join(root, PLACES.container), "utf8"));
  return found.map(({ message, range }) => {
    const words = typeof message === "string" ? message : message.value;
    return `${PLACES.container}:${range.start.line + 1} ${words}`;
  });
}

/** Validates in a home folder of its own, because the user's settings must neither affect the result nor be changed. */
function pluginFaults(root, claude, folder, flags) {
  const home = mkdtempSync(join(tmpdir(), "ccm-home-"));
  const env = { PATH: process.env.PATH, HOME: home, USERPROFILE: home };
  try {
    execFileSync(claude, ["plugin", "validate", folder, "--strict", ...flags], { cwd: root, env, stdio: "pipe" });
    return [];
  } catch (error) {
    return [`${error.message}\n${error.stdout ?? ""}`];
  } finally {
    rmSync(home, { recursive: true });
  }
}
