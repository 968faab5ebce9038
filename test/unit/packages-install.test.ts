import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { Installer } from "../../src/claude/installer.ts";
import { InstallError } from "../../src/packages/install-faults.ts";
import { PackageCache, writeFault } from "../../src/packages/package-cache.ts";
import type { Pinned } from "../../src/packages/pinned.ts";
import { Registry } from "../kit/install/registry.ts";

const root = mkdtempSync(join(tmpdir(), "ccm-install-"));
let home: string;
beforeEach(() => (home = mkdtempSync(join(root, "home-"))));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const part: Pinned = { name: "part", version: "1.0.0", integrity: "sha512-none", bytes: 1000, entry: "main.js" };
const target = "part-1.0.0";
const packages = () => join(home, "cache/packages");
const cacheEntries = () => readdirSync(packages()).toSorted();

function cacheWith(environment: Record<string, string>): PackageCache {
  return new PackageCache({ cacheFolder: join(home, "cache"), environment });
}

/** Shell commands with the result of a complete npm: the package and its lock file. */
const INSTALLED =
  "mkdir -p node_modules/part && echo 1 > node_modules/part/main.js && echo 1 > node_modules/.package-lock.json";
const npmStarts = () => (existsSync(join(home, "starts")) ? readFileSync(join(home, "starts"), "utf8").length : 0);
const withNpm = () => ({ HOME: home, PATH: [join(home, "bin"), "/usr/bin", "/bin"].join(delimiter) });

/** Makes a cache with a fake npm that runs `commands`. `npmStarts` counts the starts. */
function cacheOf(commands: string, more: Record<string, string> = {}): PackageCache {
  mkdirSync(join(home, "bin"), { recursive: true });
  const script = `#!/bin/sh\nprintf x >> "$HOME/starts"\n${commands}\n`;
  writeFileSync(join(home, "bin/npm"), script, { mode: 0o755 });
  return cacheWith({ ...withNpm(), ...more });
}

/** Makes a folder in the cache, with the lock file of a finished npm if `isComplete`. */
function draft(name: string, isComplete = true): string {
  const folder = join(packages(), name);
  mkdirSync(join(folder, "node_modules/part"), { recursive: true });
  writeFileSync(join(folder, "node_modules/part/main.js"), "left");
  if (isComplete) writeFileSync(join(folder, "node_modules/.package-lock.json"), "{}");
  return folder;
}

/** Writes the lock of a dead server with a reused pid. */
function deadLock(folder: string): void {
  mkdirSync(packages(), { recursive: true });
  const holder = { pid: process.pid, startedAt: "1", folder };
  writeFileSync(join(packages(), `${target}.lock`), JSON.stringify(holder));
}

describe("npm and a registry", () => {
  let registry: Registry;
  const published = (name: string, more: object = {}) => {
    const folder = mkdtempSync(join(root, `${name}-`));
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version: "1.0.0", ...more }));
    writeFileSync(join(folder, "main.js"), `/* ${name} */`);
    return { ...part, ...registry.publish(folder) };
  };
  let whole: Pinned;
  beforeAll(async () => {
    registry = await Registry.start();
    const needed = published("needed");
    whole = { ...published("whole", { dependencies: { needed: "1.0.0" } }), dependencies: [needed] };
  });
  afterAll(async () => registry.close());

  const cache = () => {
    writeFileSync(join(home, ".npmrc"), `registry=${registry.url}\n`);
    return cacheWith({ HOME: home, PATH: process.env["PATH"] ?? "" });
  };

  it("an installation has the package and its dependencies, and leaves nothing else", async () => {
    const own = cache();
    await own.install(whole);
    const file = own.findEntry(whole) ?? "";
    expect(readFileSync(file, "utf8")).toBe("/* whole */");
    expect(readFileSync(join(dirname(file), "../needed/main.js"), "utf8")).toBe("/* needed */");
    expect(cacheEntries()).toEqual(["whole-1.0.0"]);
  });

  it("a package with other bytes than the release names is not installed", async () => {
    const own = cache();
    const other = { ...whole, integrity: part.integrity.replace("none", `${"A".repeat(86)}==`) };
    await expect(own.install(other)).rejects.toThrow(/whole 1\.0\.0 .*\(wrong integrity\)/);
    expect(own.findEntry(whole)).toBeUndefined();
    expect(cacheEntries()).toEqual([]);
  });
});

describe("an npm that fails", () => {
  it.each([
    ["registry (ENOTFOUND)", "echo 'npm error code ENOTFOUND'; echo 'npm error network request failed'; exit 1"],
    ["does not have it (E404)", "echo 'npm ERR! code E404' >&2; echo 'npm ERR! 404 Not Found' >&2; exit 1"],
    ["says: odd words", "echo 'npm error code EODD'; echo 'npm error errno 7'; echo 'npm error odd words'; exit 1"],
    ["npm says: only words", "echo 'npm error only words'; exit 1"],
    ["npm says: EODD", "echo 'npm error code EODD'; exit 1"],
    ["npm ended with exit code 3", "echo 'of no use'; exit 3"],
    ["npm was ended by SIGKILL", "kill -9 $$"],
    ["npm ended without an error, but has not installed the package", "exit 0"],
    ["but has not installed the package", "mkdir -p node_modules/part && echo 1 > node_modules/part/main.js"],
  ])("an npm that fails is reported with the words: %s (%s), and nothing of it stays", async (why, commands) => {
    const error: unknown = await cacheOf(commands)
      .install(part)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InstallError);
    expect(String(error)).toContain(why);
    expect(cacheEntries()).toEqual([]);
  });

  it("an npm that cannot be started is reported as such", async () => {
    const cache = cacheOf("");
    writeFileSync(join(home, "bin/npm"), "#!/nowhere/sh\n");
    await expect(cache.install(part)).rejects.toThrow("npm cannot be started: ");
  });

  it("npm is started again at the next installation after a failure", async () => {
    const cache = cacheOf(`[ -e "$HOME/online" ] || exit 1; ${INSTALLED}`);
    await expect(cache.install(part)).rejects.toThrow(InstallError);
    writeFileSync(join(home, "online"), "");
    await cache.install(part);
    expect(cache.findEntry(part)).toBe(join(packages(), target, "node_modules/part/main.js"));
  });
});

it("npm gets the user's configuration, not the project's, and runs with this Node, not a repository's", async () => {
  const variables = { npm_config_registry: "http://project", NPM_CONFIG_REGISTRY: "http://user", PATH: hostilePath() };
  await cacheOf(
    `env > "$HOME/env"; node --version > "$HOME/node"; echo "$@" > "$HOME/words"; ${INSTALLED}`,
    variables,
  ).install(part);
  const said = (file: string) => readFileSync(join(home, file), "utf8");
  expect(said("env")).toContain("NPM_CONFIG_REGISTRY=http://user");
  expect(said("env")).not.toContain("http://project");
  expect(said("node").trim()).toBe(process.version);
  expect(said("words")).toContain("ci --ignore-scripts");
  expect(existsSync(join(home, "pwned"))).toBe(false);
});

/** Returns a PATH with programs of a repository first, by name and through a link. */
function hostilePath(): string {
  const bin = join(home, "repository/node_modules/.bin");
  mkdirSync(bin, { recursive: true });
  symlinkSync(bin, join(home, "link"));
  const script = `#!/bin/sh\n: > "${home}/pwned"\n`;
  for (const name of ["node", "npm", "mkdir", "env"]) writeFileSync(join(bin, name), script, { mode: 0o755 });
  return [bin, join(home, "link"), join(home, "bin"), "/usr/bin", "/bin"].join(delimiter);
}

describe("servers that need one package", () => {
  it("servers that ask at once, each more than once, start one npm, and none later", async () => {
    const [one, other] = [cacheOf(INSTALLED), cacheOf(INSTALLED)];
    await Promise.all([one.install(part), one.install(part), other.install(part)]);
    await other.install(part);
    expect([one.findEntry(part), other.findEntry(part)]).not.toContain(undefined);
    expect(npmStarts()).toBe(1);
    expect(cacheEntries()).toEqual([target]);
  });

  it("a finished draft of a dead server is used without an npm", async () => {
    deadLock(draft(`${target}.1.draft`));
    const cache = cacheOf(INSTALLED);
    await cache.install(part);
    expect(readFileSync(cache.findEntry(part) ?? "", "utf8")).toBe("left");
    expect(npmStarts()).toBe(0);
    expect(cacheEntries()).toEqual([target]);
  });

  it("an unfinished draft of a dead server is installed anew", async () => {
    deadLock(draft(`${target}.1.draft`, false));
    const cache = cacheOf(INSTALLED);
    await cache.install(part);
    expect(readFileSync(cache.findEntry(part) ?? "", "utf8")).toBe("1\n");
    expect(cacheEntries()).toEqual([target]);
  });

  it("a package that another server has put in place meanwhile is used", async () => {
    const other = `mkdir -p ../${target}/node_modules/part && echo other > ../${target}/node_modules/part/main.js`;
    const cache = cacheOf(`${INSTALLED}; ${other}`);
    await cache.install(part);
    expect(readFileSync(cache.findEntry(part) ?? "", "utf8")).toBe("other\n");
    expect(cacheEntries()).toEqual([target]);
  });

  it("a package that a cleaner of caches has removed in part is installed anew", async () => {
    mkdirSync(join(packages(), target, "node_modules/part/rest"), { recursive: true });
    const cache = cacheOf(INSTALLED);
    await cache.install(part);
    expect(readFileSync(cache.findEntry(part) ?? "", "utf8")).toBe("1\n");
    expect(cacheEntries()).toEqual([target]);
  });

  it.each([
    ["elsewhere", "../../valued.draft"],
    ["of another name", "valued"],
  ])("a folder %s is not removed if a lock names it", async (_, name) => {
    const valued = draft(name);
    deadLock(valued);
    const cache = cacheOf(INSTALLED);
    await cache.install(part);
    expect(npmStarts()).toBe(1);
    expect(existsSync(join(valued, "node_modules/part/main.js"))).toBe(true);
  });
});

it("an installation removes versions unused for a month, and drafts of dead servers after an hour", async () => {
  const [dead, hoursAgo, yearsAgo] = [4_194_304, Date.now() / 1000 - 7200, 1];
  const old = {
    "part-0.9.0": yearsAgo,
    "other-1.0.0": hoursAgo,
    [`other-1.0.0.${String(dead)}.draft`]: hoursAgo,
    [`other-1.0.0.${String(process.pid)}.draft`]: hoursAgo,
  };
  for (const [name, seconds] of Object.entries(old)) utimesSync(draft(name), seconds, seconds);
  draft(`other-2.0.0.${String(dead)}.draft`);
  await cacheOf(INSTALLED).install(part);
  const kept = ["other-1.0.0", `other-1.0.0.${String(process.pid)}.draft`, `other-2.0.0.${String(dead)}.draft`, target];
  expect(cacheEntries()).toEqual(kept.toSorted());
});

it("a cache folder that cannot be made is named in the error", async () => {
  writeFileSync(join(home, "cache"), "");
  await expect(cacheOf(INSTALLED).install(part)).rejects.toThrow(`${join(home, "cache")} is not a folder`);
  // `doctor` uses `writeFault` to report the fault before any installation.
  expect(await writeFault(packages())).toMatchObject({ code: "ENOTDIR" });
  expect(await writeFault(join(home, "new/packages"))).toBeUndefined();
  expect(npmStarts()).toBe(0);
});

it.each([
  [400, 401],
  [5000, 1000],
])(
  "of an unfinished folder with %d bytes, %d are reported as installed: at most the size of the package",
  async (bytes, reported) => {
    const cache = cacheOf(INSTALLED);
    expect(await cache.installedBytes(part)).toBe(0);
    const folder = join(packages(), `${target}.1.draft`);
    deadLock(folder);
    expect(await cache.installedBytes(part)).toBe(0);
    mkdirSync(join(folder, "node_modules/part/lib"), { recursive: true });
    writeFileSync(join(folder, "node_modules/part/lib/a"), "a".repeat(bytes));
    writeFileSync(join(folder, "node_modules/part/b"), "b");
    expect(await cache.installedBytes(part)).toBe(reported);
    await cache.install(part);
    expect(await cache.installedBytes(part)).toBe(1000);
  },
);

describe("before the first session", () => {
  afterEach(() => vi.useRealTimers());
  const preparation = (packageCache: PackageCache, toInstall?: Pinned) => {
    const found = { path: undefined, version: undefined, warning: undefined };
    const claude = { locate: async () => Promise.resolve({ ...found, ...(toInstall && { toInstall }) }) };
    return new Installer({ claude, packages: packageCache });
  };

  it("a missing Claude Code is installed with the session's npm, and progress is reported in percent", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const half = "mkdir -p node_modules/part; printf '%0500d' 0 > node_modules/part/half";
    const cache = cacheOf(`${half}; until [ -e "$HOME/go" ]; do sleep 0.01; done; ${INSTALLED}`, { PATH: "/nowhere" });
    const shown: number[] = [];
    const done = preparation(cache, part).install({ environment: withNpm() }, (percent) => void shown.push(percent));
    await vi.waitFor(() => expect(shown).toContain(50), 10_000);
    writeFileSync(join(home, "go"), "");
    await done;
    expect(shown[0]).toBe(0);
    expect(cache.findEntry(part)).toBe(join(packages(), target, "node_modules/part/main.js"));
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    ["a Claude Code is found", undefined, undefined],
    ["the session names its own", "/opt/claude", part],
  ])("nothing is installed or reported if %s", async (_, own, toInstall) => {
    const onProgress = vi.fn<(percent: number) => void>();
    await preparation(cacheOf(INSTALLED), toInstall).install({ environment: withNpm(), ownClaude: own }, onProgress);
    expect([onProgress.mock.calls.length, npmStarts()]).toEqual([0, 0]);
  });

  it("a failed installation ends the progress with its error", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const failed = preparation(cacheOf("exit 3"), part).install({ environment: withNpm() }, () => undefined);
    await expect(failed).rejects.toThrow("exit code 3");
    expect(vi.getTimerCount()).toBe(0);
  });
});
