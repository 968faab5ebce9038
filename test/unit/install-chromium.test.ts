import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

/** Runs scripts/install-chromium.mjs on simulated machines: the folder `bin` is the whole PATH. */

let root: string;
let bin: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "ccm-chromium-"));
  bin = join(root, "bin");
  mkdirSync(bin);
  for (const tool of ["sh", "env", "chmod", "cp"]) {
    const [found = ""] = ["/bin", "/usr/bin"].map((folder) => join(folder, tool)).filter(existsSync);
    symlinkSync(found, join(bin, tool));
  }
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Adds a command to the machine. */
function addCommand(name: string, body: string): string {
  const path = join(bin, name);
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

function runScript(env: Record<string, string> = {}) {
  const run = spawnSync(process.execPath, ["scripts/install-chromium.mjs"], {
    env: { PATH: bin, ...env },
    encoding: "utf8",
  });
  return { status: run.status, stdout: run.stdout.trim(), stderr: run.stderr };
}

/** Adds an apt-get that records its arguments. With `installs`, the apt-get installs a Chromium. */
const addApt = (installs: boolean) =>
  addCommand(
    "apt-get",
    `echo "$DEBIAN_FRONTEND $*" >>${root}/asked${installs ? `; case "$*" in *chromium*) cp ${bin}/env ${bin}/chromium-headless-shell;; esac` : ""}`,
  );
const aptCalls = () => readFileSync(join(root, "asked"), "utf8").trim().split("\n");

describe("with an installed browser", () => {
  it("CHROMIUM_PATH is used, otherwise the best browser in the PATH; nothing is installed", () => {
    const chrome = addCommand("google-chrome", "");
    expect(runScript()).toEqual({ status: 0, stdout: chrome, stderr: "" });
    const chromium = addCommand("chromium", "");
    expect(runScript()).toMatchObject({ status: 0, stdout: chromium });
    expect(runScript({ CHROMIUM_PATH: chrome })).toMatchObject({ status: 0, stdout: chrome });
    addApt(true);
    expect(runScript()).toMatchObject({ status: 0, stdout: chromium });
    const shell = addCommand("chromium-headless-shell", "");
    expect(runScript()).toMatchObject({ status: 0, stdout: shell });
    expect(existsSync(join(root, "asked"))).toBe(false);
  });

  it("a CHROMIUM_PATH that cannot be run is an error", () => {
    addCommand("chromium", "");
    const { status, stderr, stdout } = runScript({ CHROMIUM_PATH: join(root, "none") });
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("Set it to the executable of a Chromium, or not at all.");
  });
});

describe("without a browser", () => {
  /** Adds a sudo that permits everything, so that the test is independent of the user. */
  const addSudo = () => addCommand("sudo", '[ "$1" = -n ] && shift; [ "$1" = true ] && exit 0; exec "$@"');

  it("without a browser, apt-get installs one, with a message", () => {
    addSudo();
    addApt(true);
    const { status, stderr, stdout } = runScript();
    expect([status, stdout]).toEqual([0, join(bin, "chromium-headless-shell")]);
    expect(stderr).toMatch(
      /^No Chromium here: installing .*\nChromium was installed in \d+ s: .*chromium-headless-shell\n$/,
    );
    expect(aptCalls().filter((line) => line.startsWith("noninteractive"))).toEqual([
      "noninteractive -qq -o DPkg::Lock::Timeout=120 update",
      "noninteractive -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends chromium-headless-shell fonts-dejavu-core",
    ]);
  });

  it.each([
    ["apt-get", () => undefined, "There is no Chromium on this machine."],
    [
      "a network",
      () => [addSudo(), addCommand("apt-get", '[ "$1" = --version ] || { echo "no network" >&2; exit 100; }')],
      "no network",
    ],
    ["a package that brings a browser", () => [addSudo(), addApt(false)], "it is not in the PATH"],
  ])("without a browser and without %s, a message says what to do", (_, machine, why) => {
    machine();
    const { status, stderr, stdout } = runScript();
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(why);
    expect(stderr).toContain("set CHROMIUM_PATH to its executable");
  });
});
