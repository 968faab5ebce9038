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

/** scripts/install-chromium.mjs on different machines: each is a folder that is the whole PATH. */

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

/** A command of that machine. */
function has(name: string, body: string): string {
  const path = join(bin, name);
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

function find(env: Record<string, string> = {}) {
  const run = spawnSync(process.execPath, ["scripts/install-chromium.mjs"], {
    env: { PATH: bin, ...env },
    encoding: "utf8",
  });
  return { status: run.status, stdout: run.stdout.trim(), stderr: run.stderr };
}

/** An apt-get that records its arguments, and installs a Chromium if it is told to. */
const apt = (installs: boolean) =>
  has(
    "apt-get",
    `echo "$DEBIAN_FRONTEND $*" >>${root}/asked${installs ? `; case "$*" in *chromium*) cp ${bin}/env ${bin}/chromium-headless-shell;; esac` : ""}`,
  );
const asked = () => readFileSync(join(root, "asked"), "utf8").trim().split("\n");

describe("with an installed browser", () => {
  it("CHROMIUM_PATH is used, or else the first one in the PATH", () => {
    const chrome = has("google-chrome", "");
    expect(find()).toEqual({ status: 0, stdout: chrome, stderr: "" });
    const chromium = has("chromium", "");
    expect(find()).toMatchObject({ status: 0, stdout: chromium });
    expect(find({ CHROMIUM_PATH: chrome })).toMatchObject({ status: 0, stdout: chrome });
    apt(true);
    expect(find()).toMatchObject({ status: 0, stdout: chromium });
    const shell = has("chromium-headless-shell", "");
    expect(find()).toMatchObject({ status: 0, stdout: shell });
    expect(existsSync(join(root, "asked"))).toBe(false);
  });

  it("a CHROMIUM_PATH that cannot be run is an error", () => {
    has("chromium", "");
    const { status, stderr, stdout } = find({ CHROMIUM_PATH: join(root, "none") });
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("Set it to the executable of a Chromium, or not at all.");
  });
});

describe("without a browser", () => {
  /** This sudo permits everything, so that the test is independent of the user. */
  const passing = () => has("sudo", '[ "$1" = -n ] && shift; [ "$1" = true ] && exit 0; exec "$@"');

  it("apt-get installs one, with a message", () => {
    passing();
    apt(true);
    const { status, stderr, stdout } = find();
    expect([status, stdout]).toEqual([0, join(bin, "chromium-headless-shell")]);
    expect(stderr).toMatch(
      /^No Chromium here: installing .*\nChromium was installed in \d+ s: .*chromium-headless-shell\n$/,
    );
    expect(asked().filter((line) => line.startsWith("noninteractive"))).toEqual([
      "noninteractive -qq update",
      "noninteractive -qq install -y --no-install-recommends chromium-headless-shell fonts-dejavu-core",
    ]);
  });

  it.each([
    ["apt-get", () => undefined, "There is no Chromium on this machine."],
    [
      "a network",
      () => [passing(), has("apt-get", '[ "$1" = --version ] || { echo "no network" >&2; exit 100; }')],
      "no network",
    ],
    ["a package of that name", () => [passing(), apt(false)], "it is not in the PATH"],
  ])("and without %s, a message says what to do", (_, machine, why) => {
    machine();
    const { status, stderr, stdout } = find();
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(why);
    expect(stderr).toContain("set CHROMIUM_PATH to its executable");
  });
});
