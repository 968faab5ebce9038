import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { planSandbox, isNamedByAll, type SandboxPolicy } from "../../src/claude/sandbox/sandbox.ts";
import { loosened } from "../../src/claude/sandbox/sandboxed-options.ts";
import { findWaysOut } from "../../src/claude/sandbox/user-settings.ts";
import { withoutFolders } from "../../src/claude/process/permissions.ts";
import { hostsOf } from "../../src/config/approvals/settings.ts";
import { parseRule, type Rule } from "../../src/domain/approvals/rule.ts";
import type { SessionOptions } from "../../src/domain/options.ts";
import { sandboxProblem } from "../../src/security/sandbox.ts";

let root: string;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "ccm-sandbox-")));
  for (const folder of ["project/bin", "more", "config", "trusted/sub", "programs"])
    mkdirSync(join(root, folder), { recursive: true });
  symlinkSync(join(root, "project"), join(root, "link"));
});
afterAll(() => rmSync(root, { recursive: true }));

function rules(texts: string[], behavior: "allow" | "ask" | "deny"): Rule[] {
  return texts.map((text) => {
    const read = parseRule(text, behavior);
    if (!read.ok) throw new Error(read.problem);
    return read.rule;
  });
}

interface Setup {
  readonly session?: Partial<SessionOptions>;
  readonly sandboxPolicy?: Partial<SandboxPolicy>;
  readonly path?: string;
  readonly ask?: string[];
  readonly deny?: string[];
}

async function sandboxed({ ask = [], deny = [], sandboxPolicy = {}, path = "/usr/bin", session = {} }: Setup) {
  return planSandbox({
    options: { cwd: join(root, "project"), ...session },
    environment: { PATH: path, CLAUDE_CONFIG_DIR: join(root, "config"), HOME: root },
    sandboxPolicy: { domains: [], closed: [], writeProtected: [], configFolders: [], trusted: [], ...sandboxPolicy },
    rules: { ask: rules(ask, "ask"), deny: rules(deny, "deny") },
  });
}

describe("the sandbox policy of a session", () => {
  it("every option that a session leaves unset has its strict value", async () => {
    const { permissions, sandbox } = await sandboxed({});
    expect(sandbox).toMatchObject({
      enabled: true,
      failIfUnavailable: true,
      autoAllowBashIfSandboxed: false,
      allowUnsandboxedCommands: false,
      enableWeakerNestedSandbox: false,
      allowNestedUserNamespaces: false,
      network: { allowedDomains: [], strictAllowlist: true, allowAllUnixSockets: false, allowLocalBinding: false },
      filesystem: { disabled: false },
    });
    expect(permissions.blockWritesOutsideWorkingDirectories).toBe(true);
  });

  it("a session that began with commands of a verification goes on in the sandbox, without them", async () => {
    await expect(sandboxed({ session: { verify: ["npm test"] } })).resolves.toBeDefined();
  });

  it("stricter settings of a session are kept: closed files, hosts and variables", async () => {
    const own = {
      filesystem: { denyRead: ["/closed"], denyWrite: ["/kept"] },
      network: { deniedDomains: ["evil.example"] },
      credentials: { envVars: [{ name: "TOKEN", mode: "deny" as const }] },
    };
    const { sandbox } = await sandboxed({
      session: { sandbox: own },
      sandboxPolicy: { closed: ["/state"], domains: ["a.example"] },
    });
    expect(sandbox.filesystem?.denyRead).toEqual(expect.arrayContaining(["/state", "/closed"]));
    expect(sandbox.filesystem?.denyWrite).toEqual(expect.arrayContaining(["/state", "/kept", join(root, "config")]));
    expect(sandbox.network).toMatchObject({ allowedDomains: ["a.example"], deniedDomains: ["evil.example"] });
    expect(sandbox.credentials).toEqual(own.credentials);
  });

  it.each<[string, Setup, boolean]>([
    ["is needed by default", {}, false],
    [
      "is not needed with `autoAllowBashIfSandboxed`",
      { session: { sandbox: { autoAllowBashIfSandboxed: true } } },
      true,
    ],
    [
      "is needed with a rule that asks",
      { session: { sandbox: { autoAllowBashIfSandboxed: true } }, ask: ["Bash(git *)"] },
      false,
    ],
    [
      "is needed with a rule that denies",
      { session: { sandbox: { autoAllowBashIfSandboxed: true } }, deny: ["Bash(git push:*)"] },
      false,
    ],
    [
      "is needed with a rule of the session",
      { session: { sandbox: { autoAllowBashIfSandboxed: true }, disallowedTools: ["Bash(rm *)"] } },
      false,
    ],
    [
      "is not needed with a rule for files",
      { session: { sandbox: { autoAllowBashIfSandboxed: true } }, deny: ["Read(.env)"] },
      true,
    ],
  ])("approval of a command in the sandbox %s", async (_, setup, expected) => {
    expect((await sandboxed(setup)).sandbox.autoAllowBashIfSandboxed).toBe(expected);
  });

  it("rules for file tools also close paths to the shell, including the session's own rules", async () => {
    const { permissions, sandbox } = await sandboxed({
      deny: ["Read(.env)", "Edit(//etc/**)", "Bash(git push:*)", "Edit"],
      session: { disallowedTools: ["Read(~/keys/**)", "Write"] },
    });
    expect(permissions.deny).toEqual(["Read(~/keys/**)", `Read(/${root}/project/**/.env)`, "Edit(//etc/**)"]);
    expect(sandbox.filesystem?.denyWrite).toContain(join(root, "project"));
  });

  it("logins of other principals cannot be read, and the server's code cannot be written", async () => {
    const { sandbox } = await sandboxed({
      sandboxPolicy: { writeProtected: ["/opt/server"], configFolders: ["/home/bob/.claude"] },
    });
    expect(sandbox.filesystem?.denyRead).toContain("/home/bob/.claude/.credentials.json");
    expect(sandbox.filesystem?.denyWrite).toEqual(
      expect.arrayContaining(["/home/bob/.claude/projects", "/opt/server", join(root, "config")]),
    );
    expect(sandbox.filesystem?.denyRead).not.toContain("/opt/server");
  });

  it("files that run outside the sandbox cannot be written: real paths of PATH, and settings of trusted projects", async () => {
    const { deny, environment, sandbox } = await sandboxed({
      path: `bin:${root}/link/bin::${root}/programs:./x:/usr/bin`,
      sandboxPolicy: { trusted: [join(root, "more"), join(root, "trusted", "sub")] },
      session: { additionalDirectories: ["../more", join(root, "trusted")] },
    });
    // `PATH` without folders of the session, because a repository could contain a `bwrap`.
    expect(environment["PATH"]).toBe(`${root}/programs:/usr/bin`);
    const kept = ["project/bin", "more/.claude", "more/.mcp.json", "trusted/sub/.claude", "trusted/.mcp.json"].map(
      (way) => join(root, way),
    );
    expect(sandbox.filesystem?.denyWrite).toEqual(expect.arrayContaining(kept));
    expect(sandbox.filesystem?.denyWrite).not.toContain(join(root, "programs"));
    expect(deny).toEqual(expect.arrayContaining(kept.map((path) => `Edit(/${path}/**)`)));
    expect(deny).toEqual(
      expect.arrayContaining([`Edit(/${root}/project/.git/hooks/**)`, `Edit(/${root}/more/.mcp.json)`, "LSP"]),
    );
  });

  it("`trustDirs` match a folder by its real path, but not its subfolders", async () => {
    const trusted = [join(root, "trusted")];
    const isNamed = async (cwd: string, trustDirs: string[]) => isNamedByAll(cwd, [{ trustDirs }]);
    expect(await isNamed(join(root, "trusted"), trusted)).toBe(true);
    expect(await isNamed(join(root, "trusted", "sub"), trusted)).toBe(false);
    expect(await isNamed(join(root, "link"), [join(root, "project")])).toBe(true);
  });

  const stdio = { type: "stdio" as const, command: "touch" };
  const agent = { description: "d", prompt: "p" };
  it.each<[string, Partial<SessionOptions>]>([
    ["env", { env: { PATH: "/mine" } }],
    ["pathToClaudeCodeExecutable", { pathToClaudeCodeExecutable: "/bin/sh" }],
    ["mcpServers", { mcpServers: { x: stdio } }],
    ["agents.a.mcpServers", { agents: { a: { ...agent, mcpServers: [{ x: stdio }] } } }],
    ["debugFile", { debugFile: "/root/.bashrc" }],
    ["sandbox.enabled", { sandbox: { enabled: false } }],
    ["sandbox.excludedCommands", { sandbox: { excludedCommands: ["touch *"] } }],
  ])("the option %s is refused", async (name, session) => {
    const refusal = expect.objectContaining({
      code: "PERMISSION_DENIED",
      message: expect.stringMatching(`^${name}: `) as string,
    });
    await expect(sandboxed({ session })).rejects.toEqual(refusal);
  });

  it("an agent may refer to MCP servers by name", async () => {
    const { sandbox } = await sandboxed({ session: { agents: { a: { ...agent, mcpServers: ["known"] } } } });
    expect(sandbox.enabled).toBe(true);
  });

  it("`withoutFolders` drops folders from an approval, and nothing else", () => {
    const rule = {
      type: "addRules" as const,
      behavior: "allow" as const,
      rules: [{ toolName: "Bash" }],
      destination: "session" as const,
    };
    const folders = { type: "addDirectories" as const, directories: ["/"], destination: "session" as const };
    const result = { behavior: "allow" as const, updatedPermissions: [folders, rule] };
    expect(withoutFolders(result)).toEqual({ behavior: "allow", updatedPermissions: [rule] });
    expect(withoutFolders({ behavior: "allow" })).toEqual({ behavior: "allow" });
  });
});

describe("a sandbox that is looser than the required one", () => {
  it.each<[NonNullable<SessionOptions["sandbox"]>, string[]]>([
    [{}, []],
    [{ enabled: true, failIfUnavailable: true, allowUnsandboxedCommands: false, excludedCommands: [] }, []],
    [{ failIfUnavailable: false, allowUnsandboxedCommands: true }, ["failIfUnavailable", "allowUnsandboxedCommands"]],
    [
      { enableWeakerNestedSandbox: true, allowNestedUserNamespaces: true },
      ["enableWeakerNestedSandbox", "allowNestedUserNamespaces"],
    ],
    [
      { enableWeakerNetworkIsolation: true, allowAppleEvents: true },
      ["enableWeakerNetworkIsolation", "allowAppleEvents"],
    ],
    [{ ripgrep: { command: "touch" }, bwrapPath: "/x", socatPath: "/x" }, ["ripgrep", "bwrapPath", "socatPath"]],
    [
      { network: { allowedDomains: ["x"], allowUnixSockets: ["/x"] } },
      ["network.allowedDomains", "network.allowUnixSockets"],
    ],
    [
      { network: { allowAllUnixSockets: true, allowLocalBinding: true } },
      ["network.allowAllUnixSockets", "network.allowLocalBinding"],
    ],
    [{ network: { httpProxyPort: 1, socksProxyPort: 1 } }, ["network.httpProxyPort", "network.socksProxyPort"]],
    [
      { network: { strictAllowlist: false, allowMachLookup: ["x"], tlsTerminate: {} } },
      ["network.strictAllowlist", "network.allowMachLookup", "network.tlsTerminate"],
    ],
    [
      { filesystem: { allowWrite: ["/"], allowRead: ["/"], disabled: true } },
      ["filesystem.allowWrite", "filesystem.allowRead", "filesystem.disabled"],
    ],
    [{ filesystem: { denyRead: ["/x"], denyWrite: ["/x"], disabled: false } }, []],
    [{ credentials: { envVars: [{ name: "X", mode: "mask" }] } }, ["credentials.envVars"]],
    [
      { credentials: { files: [{ path: "/x", mode: "deny" }], allowPlaintextInject: true } },
      ["credentials.allowPlaintextInject"],
    ],
  ])("`loosened` names each option of %j that is looser than required", (sandbox, names) => {
    expect(loosened(sandbox)).toEqual(names);
  });
});

describe("user settings that weaken the sandbox", () => {
  it.each<[string, string[]]>([
    ["{}", []],
    ["no JSON", []],
    ['{"sandbox":{"enabled":true,"filesystem":{"allowWrite":["~/notes"]},"network":{"allowedDomains":["x"]}}}', []],
    ['{"sandbox":{"excludedCommands":[]}}', []],
    ['\uFEFF{"sandbox":{"excludedCommands":["git *"]}}', ["sandbox.excludedCommands"]],
    [
      '{"sandbox":{"ripgrep":{"command":"x"},"network":{"httpProxyPort":1}}}',
      ["sandbox.ripgrep", "sandbox.network.httpProxyPort"],
    ],
    ['{"sandbox":{"filesystem":{"allowRead":["/"]}}}', ["sandbox.filesystem.allowRead"]],
  ])("`findWaysOut` names the settings in %s that weaken the sandbox", (text, names) => {
    expect(findWaysOut(text)).toEqual(names);
  });

  it("user settings that weaken the sandbox prevent the start of every session that would read them", async () => {
    const file = join(root, "config", "settings.json");
    writeFileSync(file, '{"sandbox":{"excludedCommands":["git *"]}}');
    await expect(sandboxed({})).rejects.toThrow("sandbox.excludedCommands");
    expect((await sandboxed({ session: { settingSources: ["project"] } })).sandbox.enabled).toBe(true);
    rmSync(file);
  });
});

describe("the check for a sandbox", () => {
  it("a missing sandbox is reported with the packages to install", async () => {
    expect(await sandboxProblem({ PATH: join(root, "programs") }, "linux")).toContain(
      "apt-get install bubblewrap socat",
    );
    expect(await sandboxProblem({}, "win32")).toContain("WSL 2");
  });

  it("the check runs bwrap, because an existing bwrap may not work", async () => {
    const folder = join(root, "programs");
    const program = (name: string, text: string) => {
      writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(folder, name), 0o755);
    };
    program("socat", "exit 0");
    program("bwrap", "echo 'bwrap: No permissions to create new namespace' >&2; exit 1");
    const problem = await sandboxProblem({ PATH: folder }, "linux");
    expect(problem).toContain("No permissions to create new namespace");
    expect(problem).toContain("user namespaces");
    program("bwrap", "exit 0");
    expect(await sandboxProblem({ PATH: folder }, "linux")).toBeUndefined();
  });

  it("`hostsOf` reads hosts from rules for WebFetch", () => {
    expect(hostsOf(rules(["WebFetch(domain:a.example)", "WebFetch", "Read"], "allow"))).toEqual(["a.example"]);
  });
});
