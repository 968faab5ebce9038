import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";

import { bundledClaudes, platformPackage, userClaudeFiles } from "../../src/claude/claude-files.ts";
import { withClaudePath } from "../../src/domain/client-environment.ts";
import { ClaudeLocator, NoClaudeError, executedClaudeFiles, findUpdateCommand } from "../../src/claude/locate.ts";
import { runClaude } from "../../src/claude/run-claude.ts";
import { compareVersions, NEEDED_VERSION, NEWEST_TESTED, Versions } from "../../src/claude/version.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-locate-")));
let home: string;
let warned: string[];

beforeEach(() => {
  home = mkdtempSync(join(root, "home-"));
  warned = [];
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Writes a program with output `text`; each start adds a line to the file `starts`. */
function program(path: string, text: string, more = ""): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\necho start >> ${join(home, "starts")}\n${more}echo "${text}"\n`, { mode: 0o755 });
  return path;
}

function writeProgram(name: string, text: string): string {
  writeFileSync(join(home, name), text, { mode: 0o755 });
  return join(home, name);
}

function starts(): number {
  try {
    return readFileSync(join(home, "starts"), "utf8").split("\n").length - 1;
  } catch {
    return 0;
  }
}

const bin = () => join(home, "bin");
const cacheFolder = () => join(home, "cache");
const environment = () => ({ HOME: home, PATH: `${bin()}:/bin`, NPM_CONFIG_PREFIX: join(home, "npm") });

function locator(settings: { claudePath?: string; bundled?: string[]; cached?: string | null } = {}) {
  const { bundled = [], cached, claudePath } = settings;
  const log = { warn: (text: string) => void warned.push(text) };
  // `null`: packages can be installed, but none is installed.
  const packages = cached === undefined ? undefined : { findEntry: () => cached ?? undefined };
  const one = new ClaudeLocator({ packages, cacheFolder: cacheFolder(), log }, () => bundled);
  return { locate: async () => one.locate(withClaudePath(environment(), claudePath)) };
}

async function refusal(of: ReturnType<typeof locator>): Promise<NoClaudeError> {
  const error: unknown = await of.locate().catch((thrown: unknown) => thrown);
  if (error instanceof NoClaudeError) return error;
  throw new Error("a Claude Code was located");
}

describe("the Claude Code of the sessions", () => {
  it("sessions use the Claude Code of --claude-path, then of the SDK, then of PATH, then of a usual place", async () => {
    const named = program(join(home, "named"), `${NEEDED_VERSION} (Claude Code)`);
    const onPath = program(join(bin(), "claude"), "2.1.300 (Claude Code)");
    const usual = program(join(home, ".local/bin/claude"), "2.1.301 (Claude Code)");
    const bundled = ["/sdk/claude"];
    expect(await locator({ claudePath: named, bundled }).locate()).toMatchObject({
      path: named,
      version: NEEDED_VERSION,
    });
    expect(await locator({ bundled }).locate()).toMatchObject({ path: "/sdk/claude" });
    expect(await locator().locate()).toMatchObject({ path: onPath, version: "2.1.300" });
    rmSync(onPath);
    expect(await locator().locate()).toMatchObject({ path: usual, version: "2.1.301" });
  });

  it("each environment has its own Claude Code, by its PATH or by the path named in it", async () => {
    const one = program(join(bin(), "claude"), "2.1.300 (Claude Code)");
    const other = program(join(home, "other/claude"), "2.1.301 (Claude Code)");
    const named = program(join(home, "named"), "2.1.302 (Claude Code)");
    const log = { warn: () => undefined };
    const locators = new ClaudeLocator({ cacheFolder: cacheFolder(), log }, () => []);
    const otherPath = { ...environment(), PATH: join(home, "other") };
    for (const _ of ["asked", "known"]) {
      expect((await locators.locate(environment())).path).toBe(one);
      expect((await locators.locate(otherPath)).path).toBe(other);
      expect((await locators.locate(withClaudePath(otherPath, named))).path).toBe(named);
    }
    expect(starts()).toBe(3);
  });

  it("the SDK's Claude Code is not asked for its version; with two of them, the SDK chooses", async () => {
    program(join(bin(), "claude"), "2.1.300 (Claude Code)");
    const bundled = [program(join(home, "sdk"), "2.1.332 (Claude Code)")];
    expect((await locator({ bundled }).locate()).path).toBe(bundled[0]);
    expect((await locator({ bundled: [...bundled, "/musl/claude"] }).locate()).path).toBeUndefined();
    expect(starts()).toBe(0);
  });

  it("each state of a file is asked for its version once, also across servers", async () => {
    const path = program(join(bin(), "claude"), "2.1.300 (Claude Code)");
    const first = locator();
    await Promise.all([first.locate(), first.locate()]);
    await locator().locate();
    expect(starts()).toBe(1);
    utimesSync(path, 1, 1);
    await locator().locate();
    expect(starts()).toBe(2);
    // An update by the native installer redirects the link to another file.
    const newer = program(join(home, "versions/2.1.310"), "2.1.310 (Claude Code)");
    rmSync(path);
    symlinkSync(newer, path);
    expect((await first.locate()).version).toBe("2.1.310");
  });

  it("a usual place is searched if the program in PATH is too old, fails, or is another program", async () => {
    const usual = program(join(home, ".claude/local/claude"), "2.1.301 (Claude Code)");
    for (const text of ["2.1.100 (Claude Code)", "claude 3.0.0", ""]) {
      program(join(bin(), "claude"), text);
      expect((await locator().locate()).path).toBe(usual);
    }
    program(join(bin(), "claude"), "2.1.300 (Claude Code)", "exit 3\n");
    expect((await locator().locate()).path).toBe(usual);
  });
});

describe("a server that can install the SDK's Claude Code", () => {
  it("an installed package is used before the Claude Code of PATH", async () => {
    program(join(bin(), "claude"), "2.1.300 (Claude Code)");
    expect((await locator({ cached: "/cache/claude" }).locate()).path).toBe("/cache/claude");
    expect(starts()).toBe(0);
  });

  it("the Claude Code of PATH is used if no package is installed", async () => {
    const path = program(join(bin(), "claude"), "2.1.300 (Claude Code)");
    const found = await locator({ cached: null }).locate();
    expect(found).toEqual({ path, version: "2.1.300", warning: undefined });
  });

  it("`toInstall` names the package of this machine if the Claude Code of PATH is too old, with one warning", async () => {
    const path = program(join(bin(), "claude"), "2.1.100 (Claude Code)");
    const one = locator({ cached: null });
    await one.locate();
    expect((await one.locate()).toInstall).toEqual(platformPackage());
    expect(warned).toEqual([
      expect.stringMatching(`^${path} is version 2.1.100: .* The Agent SDK's Claude Code is used instead.$`),
    ]);
    // npm chooses by the C library as well, so `platformPackage` must agree with npm.
    expect(bundledClaudes().map((file) => file.split("/").slice(-3, -1).join("/"))).toContain(platformPackage()?.name);
  });
});

describe("a program that gives no version", () => {
  const versions = () => new Versions({ cacheFolder: cacheFolder() });

  it.each([
    ["does not exist", () => join(home, "gone"), "cannot be read: "],
    ["has no interpreter", () => writeProgram("claude", "#!/nowhere/sh\n"), "cannot be started: "],
    ["is ended by a signal", () => program(join(bin(), "claude"), "", "kill -9 $$\n"), "(exit code none)"],
    ["is another program", () => program(join(bin(), "claude"), "2.1.300"), "is not Claude Code"],
  ])("a program that %s is reported with the reason", async (_, path, problem) => {
    expect(await versions().of(path(), environment())).toEqual({ problem: expect.stringContaining(problem) });
  });

  it("a program without a version is asked again after 30 seconds", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const path = program(join(bin(), "claude"), "", "exit 1\n");
      const one = versions();
      await one.of(path, environment());
      await one.of(path, environment());
      expect(starts()).toBe(1);
      vi.advanceTimersByTime(30_000);
      await one.of(path, environment());
      expect(starts()).toBe(2);
    } finally {
      vi.useRealTimers();
    }
  });

  it("a path with a null byte is reported as a problem, without an exception", async () => {
    const question = { environment: environment(), ms: 5_000 };
    const answer = await runClaude("/bin/\0", ["--version"], question);
    expect(answer).toEqual({ problem: expect.stringContaining("cannot be started: ") });
  });

  it("a script is asked for its version through Node", async () => {
    const path = writeProgram("claude.mjs", 'console.log("2.1.303 (Claude Code)")');
    expect(await versions().of(path, environment())).toEqual({ version: "2.1.303" });
  });
});

describe("an error of the search", () => {
  it("the error names the version that is too old, the needed version and the command that updates it", async () => {
    const path = program(join(bin(), "claude"), "2.1.100 (Claude Code)");
    const error = await refusal(locator());
    expect(error.message).toContain(`${path} is version 2.1.100: ${NEEDED_VERSION} or newer is needed`);
    expect(error.message).toContain(`Run: ${path} update`);
    // After the suggested update, `path` is located.
    program(path, `${NEEDED_VERSION} (Claude Code)`);
    expect((await locator().locate()).version).toBe(NEEDED_VERSION);
  });

  it("the error names the searched places and the command that installs Claude Code", async () => {
    const { fix, message } = await refusal(locator());
    for (const place of [
      "PATH",
      join(home, ".local/bin/claude"),
      join(home, ".claude/local/claude"),
      join(home, "npm"),
    ])
      expect(message).toContain(place);
    expect(fix).toBe("npm install -g @anthropic-ai/claude-code");
  });

  it("the error names --claude-path, and no other Claude Code is used instead", async () => {
    program(join(bin(), "claude"), "2.1.300 (Claude Code)");
    expect((await refusal(locator({ claudePath: home }))).message).toContain("is not an executable file");
    const old = program(join(home, "old"), "1.0.3 (Claude Code)");
    expect((await refusal(locator({ claudePath: old }))).message).toContain(`--claude-path ${old} is version 1.0.3`);
    const { message } = await refusal(locator({ claudePath: "/bin/false" }));
    expect(message).toContain("/bin/false fails at --version (exit code 1)");
  });

  it("a program that does not answer is reported within the time limit, even if a child keeps its output open", async () => {
    const path = program(join(bin(), "claude"), "never", "sleep 600 & sleep 600\n");
    const versions = new Versions({ cacheFolder: cacheFolder(), ms: 300 });
    // The time limit of the test is far below the child's 600 s, so a wait for the child would fail.
    expect(await versions.of(path, environment())).toEqual({ problem: "did not answer --version within 0.3 s" });
  });
});

it("a version newer than the tested ones causes one warning", async () => {
  program(join(bin(), "claude"), "2.2.0 (Claude Code)");
  const one = locator();
  expect((await one.locate()).warning).toContain(`newer than ${NEWEST_TESTED}`);
  await one.locate();
  expect(warned).toHaveLength(1);
});

it("the tested range ends with the version of the pinned Agent SDK", async () => {
  const manifest: { version: string } = JSON.parse(
    readFileSync("node_modules/@anthropic-ai/claude-agent-sdk/manifest.json", "utf8"),
  );
  expect(NEWEST_TESTED).toBe(manifest.version);
  const [path = ""] = bundledClaudes();
  const versions = new Versions({ cacheFolder: cacheFolder() });
  expect(await versions.of(path, process.env)).toEqual({ version: NEWEST_TESTED });
  expect(compareVersions(NEEDED_VERSION, NEWEST_TESTED)).toBeLessThan(0);
  expect(compareVersions("2.10.0", "2.9.9")).toBeGreaterThan(0);
});

it("a cache that cannot be read or written causes no error", async () => {
  program(join(bin(), "claude"), "2.1.300 (Claude Code)");
  writeFileSync(cacheFolder(), "a file in place of the folder");
  expect((await locator().locate()).version).toBe("2.1.300");
  rmSync(cacheFolder());
  mkdirSync(cacheFolder());
  writeFileSync(join(cacheFolder(), "claude-versions.json"), "{");
  expect((await locator().locate()).version).toBe("2.1.300");
});

it("the update command is npm's or Homebrew's, depending on the path of the program", async () => {
  const ofNpm = program(join(home, "lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe"), "");
  const ofBrew = program(join(home, "Caskroom/claude-code/2.1.3/claude"), "");
  symlinkSync(ofNpm, join(home, "claude"));
  expect(await findUpdateCommand(join(home, "claude"))).toBe("npm install -g @anthropic-ai/claude-code@latest");
  expect(await findUpdateCommand(ofBrew)).toBe("brew upgrade claude-code");
});

it("relative folders of PATH and node_modules/.bin are not searched", async () => {
  const { path } = await userClaudeFiles({ PATH: `.:bin:/usr/bin:${join(home, "node_modules/.bin")}`, HOME: home });
  expect(path).toEqual(["/usr/bin/claude"]);
});

it("places of Claude Code are protected only if they are searched", async () => {
  mkdirSync(bin());
  const searched = await executedClaudeFiles(environment(), []);
  expect(searched).toEqual(expect.arrayContaining([join(bin(), "claude"), join(home, ".local/bin/claude")]));
  expect(await executedClaudeFiles(environment(), ["/sdk/claude"])).toEqual([]);
  expect(await executedClaudeFiles(withClaudePath(environment(), "/mine"), [])).toEqual(["/mine"]);
});

it.each([
  ["the prefix in NPM_CONFIG_PREFIX", { NPM_CONFIG_PREFIX: "/npm" }, "/npm/bin/claude"],
  ["the prefix in npm_config_prefix", { npm_config_prefix: "/npm" }, "/npm/bin/claude"],
  ["the home folder in USERPROFILE", { USERPROFILE: "/ann" }, "/ann/.local/bin/claude"],
])("%s is searched", async (_, variables, place) => {
  expect((await userClaudeFiles(variables)).usual).toContain(place);
});
