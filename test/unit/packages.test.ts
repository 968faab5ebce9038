import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";

import { startTime } from "../../src/claude/supervise/tree.ts";
import { InstallError, NPM_MISSING, retryCommand } from "../../src/packages/install-faults.ts";
import { breakLock, readHolder, isHeld, takeLock } from "../../src/packages/install-lock.ts";
import { PackageCache } from "../../src/packages/package-cache.ts";
import { findNpm, NPM_MS } from "../../src/packages/npm.ts";
import {
  binaryPackage,
  DRIVER_PACKAGE,
  POSTGRES_PACKAGE,
  SDK,
  SDK_PACKAGE,
  SDK_VERSION,
  TARGETS,
} from "../../src/packages/pinned.ts";

const root = mkdtempSync(join(tmpdir(), "ccm-packages-"));
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(root, "f-"))));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const Entry = z.object({
  version: z.string().default(""),
  integrity: z.string().default(""),
  dependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});
const Lock = z.object({ packages: z.record(z.string(), Entry) });

describe("packages that npm installs", () => {
  const { packages } = Lock.parse(JSON.parse(readFileSync("package-lock.json", "utf8")));
  const locked = (name: string) => packages[`node_modules/${name}`];
  const onDemand = [SDK_PACKAGE, DRIVER_PACKAGE, POSTGRES_PACKAGE];
  const pinned = [...onDemand, ...TARGETS.flatMap((target) => binaryPackage(target) ?? [])];

  /** Names of all direct and indirect dependencies. */
  const needed = (name: string): string[] =>
    Object.keys(locked(name)?.dependencies ?? {}).flatMap((each) => [each, ...needed(each)]);

  it("pinned packages are those of package-lock.json", () => {
    for (const { dependencies = [], integrity, name, version } of pinned) {
      expect(locked(name)).toMatchObject({ version, integrity });
      expect(needed(name).toSorted()).toEqual(dependencies.map((each) => each.name).toSorted());
      for (const { name: of, ...each } of dependencies) expect(locked(of)).toMatchObject(each);
    }
    const optional = Object.keys(locked(SDK)?.optionalDependencies ?? {});
    expect(optional.toSorted()).toEqual(TARGETS.map((target) => `${SDK}-${target}`).toSorted());
  });

  it("pinned sizes match the manifest of the SDK, and the installed files within 10 %", () => {
    const Manifest = z.object({ platforms: z.record(z.string(), z.object({ size: z.number() })) });
    const { platforms } = Manifest.parse(JSON.parse(readFileSync(`node_modules/${SDK}/manifest.json`, "utf8")));
    const sizes = TARGETS.map((target) => [target, { size: binaryPackage(target)?.bytes }]);
    expect(Object.fromEntries(sizes)).toEqual(platforms);
    for (const { bytes, dependencies = [], name } of onDemand) {
      const files = [name, ...dependencies.map((each) => each.name)].flatMap((each) =>
        readdirSync(`node_modules/${each}`, { recursive: true, encoding: "utf8" }).map((file) => `${each}/${file}`),
      );
      const sum = files.reduce((before, file) => before + statSync(`node_modules/${file}`).size, 0);
      expect(bytes / sum).toBeGreaterThan(0.9);
      expect(bytes / sum).toBeLessThan(1.1);
    }
  });

  it.each(["docs/installation.md", "Containerfile"])("%s names the pinned versions", (file) => {
    const named = [...readFileSync(file, "utf8").matchAll(/(@[\w-]+\/[\w-]+)@(\d+\.\d+\.\d+)/g)];
    const versions = new Map([SDK_PACKAGE, DRIVER_PACKAGE].map(({ name, version }) => [name, version]));
    expect(named.length).toBeGreaterThan(0);
    for (const [, name = "", version] of named) expect(version).toBe(versions.get(name));
  });

  it("the published package has no dependencies, and the SDK is a development dependency", () => {
    const manifest: object = JSON.parse(readFileSync("package.json", "utf8"));
    // A dependency would be one more request of the first start.
    expect(Object.keys(manifest)).not.toContain("dependencies");
    expect(Object.keys(manifest)).not.toContain("optionalDependencies");
    expect(manifest).toMatchObject({ devDependencies: { [SDK]: SDK_VERSION } });
  });
});

describe("the lock of an installation", () => {
  const lock = () => join(folder, "package.lock");
  const draft = () => join(folder, "draft");
  const held = async () => isHeld(lock(), await readHolder(lock()));

  it("a lock is held by one of several callers that ask at once, while its process lives", async () => {
    const taken = await Promise.all([1, 2, 3].map(async () => takeLock(lock(), draft())));
    expect(taken.filter(Boolean)).toHaveLength(1);
    expect(await readHolder(lock())).toMatchObject({ pid: process.pid, folder: draft() });
    expect(await held()).toBe(true);
  });

  it("a lock of a dead process is not held, even with a reused pid, and one of two callers breaks it", async () => {
    const dead = { pid: process.pid, startedAt: "1", folder: draft() };
    writeFileSync(lock(), JSON.stringify(dead));
    expect(await held()).toBe(false);
    const broken = await Promise.all([breakLock(lock(), dead), breakLock(lock(), dead)]);
    expect(broken.toSorted()).toEqual([false, true]);
    expect(await takeLock(lock(), draft())).toBe(true);
  });

  it("a lock that a living server has taken over is not broken as the lock of a dead one", async () => {
    const dead = { pid: process.pid, startedAt: "1", folder: draft() };
    await takeLock(lock(), draft());
    const living = await readHolder(lock());
    expect(await breakLock(lock(), dead)).toBe(false);
    expect(await readHolder(lock())).toEqual(living);
    expect(readdirSync(folder)).toEqual(["package.lock"]);
  });

  it("a lock is held by the npm that a dead server has left, until that npm has ended", async () => {
    writeFileSync(lock(), JSON.stringify({ pid: process.pid, startedAt: "1", folder: draft() }));
    mkdirSync(draft());
    const npm = { pid: process.pid, startedAt: await startTime(process.pid) };
    writeFileSync(join(draft(), "npm.json"), JSON.stringify(npm));
    expect(await held()).toBe(true);
    writeFileSync(join(draft(), "npm.json"), JSON.stringify({ ...npm, startedAt: "1" }));
    expect(await held()).toBe(false);
  });

  it("a missing lock is not held, and no lock is taken in a missing folder", async () => {
    expect(await held()).toBe(false);
    expect(await breakLock(lock(), undefined)).toBe(false);
    await expect(takeLock(join(folder, "gone/package.lock"), draft())).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("a lock of a frozen server or npm is not held for longer than npm may take", async () => {
    await takeLock(lock(), draft());
    const seconds = (Date.now() - NPM_MS - 600_000) / 1000;
    utimesSync(lock(), seconds, seconds);
    expect(await held()).toBe(false);
  });

  it("an empty lock is held for a moment, because its owner may still be writing", async () => {
    writeFileSync(lock(), "");
    expect(await held()).toBe(true);
    utimesSync(lock(), 1, 1);
    expect(await held()).toBe(false);
  });
});

it.each([
  ["EINTEGRITY", "", "wrong integrity", "npm config delete registry"],
  ["ENOTFOUND", "", "does not reach the registry", " doctor --fix"],
  ["E407", "", "name and a password", "npm config set https-proxy http://NAME:PASSWORD@PROXY:PORT"],
  [
    "EUNKNOWN",
    "tunneling socket: 407 Proxy Authentication Required",
    "name and a password",
    "npm config set https-proxy",
  ],
  ["E403", "", "refuses it (E403)", "npm login"],
  ["E404", "", "does not have it", "npm config delete registry"],
  ["ETARGET", "", "does not have it", "npm config delete registry"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "", "not trusted", "npm config set cafile FILE.pem"],
  ["ENOSPC", "", "the disk of /it's is full", "npm cache clean --force"],
  ["EROFS", "", "read-only disk", "export XDG_CACHE_HOME=FOLDER_THAT_CAN_BE_WRITTEN"],
  ["EACCES", "", "/it's cannot be written", "chmod -R u+rwX '/it'\\''s'"],
  ["EACCES", "", "/it's cannot be written", "sudo mkdir -p '/it'\\''s' && sudo chown"],
  ["EWHATEVER", "a new trouble", "npm says: a new trouble", " doctor --fix"],
])("an installation that fails with %s %s says why, and names one command", (code, text, why, fix) => {
  const error = new InstallError(SDK_PACKAGE, "/it's", { code, text });
  expect(error.message).toContain(`${SDK} ${SDK_VERSION} is not installed yet, and cannot be: `);
  expect(error.message).toContain(why);
  expect(error.fix).toContain(fix);
  expect(error.message.endsWith(`Run: ${error.fix}`)).toBe(true);
});

it("an error names the file that is in the way of a folder, and its command moves the file away", () => {
  const file = join(folder, "it's");
  writeFileSync(file, "");
  const { fix, message } = new InstallError(SDK_PACKAGE, join(file, "cache/packages"), { code: "ENOTDIR", text: "" });
  expect(message).toContain(`${file} is not a folder`);
  execFileSync("sh", ["-c", fix]);
  expect(readdirSync(folder)).toEqual(["it's.old"]);
});

it("a package is in use when its file is asked for, however long ago it was installed", async () => {
  const cache = new PackageCache({ cacheFolder: folder, environment: {} });
  expect(cache.findEntry(SDK_PACKAGE)).toBeUndefined();
  const own = join(cache.folder, `claude-agent-sdk-${SDK_VERSION}`);
  const file = join(own, "node_modules", SDK, SDK_PACKAGE.entry);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, "");
  utimesSync(own, 1, 1);
  expect(cache.findEntry(SDK_PACKAGE)).toBe(file);
  await expect.poll(() => statSync(own).mtimeMs).toBeGreaterThan(Date.now() - 60_000);
});

it("the retry command names this program by its path, or npx if this program runs from npx", () => {
  expect(retryCommand("/a clone/dist/cli/main.js")).toBe("node '/a clone/dist/cli/main.js' doctor --fix");
  const runner = "/home/me/.npm/_npx/0af1/node_modules/.bin/claude-agents-mcp";
  expect(retryCommand(runner)).toBe("npx -y claude-agents-mcp doctor --fix");
});

describe("npm", () => {
  function program(...names: string[]): string {
    const file = join(folder, ...names);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, "#!/bin/sh\n", { mode: 0o755 });
    return file;
  }

  it("npm is taken from PATH, else from beside Node, never from a repository", async () => {
    const node = program("node", "node");
    const own = program("repository", "node_modules", ".bin", "npm");
    expect(await findNpm({ PATH: join(own, "..") }, node)).toBeUndefined();
    const beside = program("node", "npm");
    expect(await findNpm({ PATH: join(own, "..") }, node)).toEqual({ program: beside, words: [] });
    const onPath = program("bin", "npm");
    expect(await findNpm({ PATH: join(onPath, "..") }, node)).toEqual({ program: onPath, words: [] });
  });

  it("the error for a missing npm has the install command of this system", () => {
    const { fix, message } = new InstallError(SDK_PACKAGE, folder, NPM_MISSING);
    expect(message).toContain("there is no npm in PATH, nor beside Node");
    const managers = ["apt-get", "apk", "pacman", "dnf", "brew", "winget"];
    expect(managers.filter((name) => fix.includes(name))).toHaveLength(1);
  });
});
